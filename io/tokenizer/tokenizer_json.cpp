// Reads a tokenizer.json. Its vocabulary and merges may have 30 MB: the vocabulary is read member
// by member, without a document of values.
#include <algorithm>
#include <cmath>

#include "io/file/source.hpp"
#include "io/read/json_document.hpp"
#include "io/text/number_text.hpp"
#include "io/tokenizer/tokenizer_parts.hpp"

namespace attn::io {
namespace {

/// The settings of a model, without its vocabulary and merges.
nlohmann::json settings_of(const JsonDocument& model) {
    nlohmann::json settings = nlohmann::json::object();
    for (const JsonMember& member : model.members())
        if (member.key != "vocab" && member.key != "merges")
            settings[member.key] = model.read_value(member);
    return settings;
}

/// The string "a b", or the two of ["a", "b"]; none for other values.
void read_strings(const JsonDocument& model, const JsonMember& entry,
                  std::vector<std::string>& strings) {
    strings.clear();
    const auto add = [&](const JsonMember& item) {
        nlohmann::json value = model.read_value(item);
        if (value.is_string())
            strings.push_back(std::move(value.get_ref<std::string&>()));
        else
            strings.clear();
        return value.is_string();
    };
    if (!model.holds_array(entry)) {
        add(entry);
        return;
    }
    model.for_each_entry(entry, add);
    if (strings.size() != 2) strings.clear();
}

}  // namespace

class TokenizerReader {
public:
    TokenizerReader(const Source& source) : source_(source), document_(source) {}

    Tokenizer read() {
        if (document_.is_array())
            throw Error(ErrorKind::input, source_.name,
                        "is a list; expected a tokenizer.json, an object with \"model\"");
        check_keys();
        parts_->location = source_.name;
        with("normalizer", [&](auto& step) { parts_->normalizer = read_normalizer(step); });
        with("pre_tokenizer",
             [&](auto& step) { parts_->pre_tokenizer = read_pre_tokenizer(step); });
        with("post_processor",
             [&](auto& step) { parts_->post_processor = read_post_processor(step); });
        with("decoder", [&](auto& step) { parts_->decoder = read_decoder(step); });
        read_model();
        read_added_tokens();
        return Tokenizer(std::move(parts_));
    }

private:
    std::string location_of(const std::string& pointer) const {
        return source_.name + ": " + pointer;
    }

    template <class... Parts>
    [[noreturn]] void fail(const std::string& pointer, const Parts&... message) const {
        throw Error(ErrorKind::input, location_of(pointer), message...);
    }

    void check_keys() const {
        if (document_.find("model") == nullptr)
            throw Error(ErrorKind::input, source_.name,
                        "has no \"model\"; expected a tokenizer.json");
        static constexpr std::array<std::string_view, 9> known{
            "version",       "truncation",     "padding", "added_tokens", "normalizer",
            "pre_tokenizer", "post_processor", "decoder", "model"};
        for (const JsonMember& member : document_.members())
            if (std::ranges::find(known, member.key) == known.end() &&
                document_.text(member) != "null")
                throw Error(ErrorKind::unsupported,
                            location_of("/" + one_line(shortened(member.key))),
                            "unknown setting of a tokenizer; expected one of version, truncation, "
                            "padding, added_tokens, normalizer, pre_tokenizer, post_processor, "
                            "decoder and model");
    }

    template <class Take>
    void with(const char* key, Take take) const {
        const JsonMember* const member = document_.find(key);
        if (member == nullptr || document_.text(*member) == "null") return;
        const nlohmann::json value = document_.read_value(*member);
        const Setting setting(value, location_of("/" + std::string(key)));
        take(setting);
    }

    void read_model() {
        const JsonMember& member = *document_.find("model");
        if (!document_.holds_object(member)) fail("/model", "is not an object; expected one");
        const JsonDocument model(source_, member);
        const nlohmann::json values = settings_of(model);
        const Setting settings(values, location_of("/model"));
        const JsonMember* const vocabulary = model.find("vocab");
        if (vocabulary == nullptr) fail("/model", "has no \"vocab\"; expected the pieces there");
        const std::string type =
            settings.has("type") ? settings.type() : guess_type(model, *vocabulary);
        if (type == "Unigram") return read_unigram(model, *vocabulary, settings);
        if (type != "BPE" && type != "WordPiece" && type != "WordLevel")
            settings.fail_type("BPE, Unigram, WordLevel and WordPiece");
        read_vocabulary(model, *vocabulary);
        if (type == "BPE") return read_bpe(model, settings);
        if (type == "WordPiece") return read_word_piece(settings);
        settings.allow({"unk_token"});
        parts_->model =
            make_word_level(pieces_, settings.location(), settings.at("unk_token").string());
    }

    /// Old files do not name the type.
    static std::string guess_type(const JsonDocument& model, const JsonMember& vocabulary) {
        if (model.holds_array(vocabulary)) return "Unigram";
        if (model.find("merges") != nullptr) return "BPE";
        return model.find("max_input_chars_per_word") != nullptr ? "WordPiece" : "WordLevel";
    }

    void read_vocabulary(const JsonDocument& model, const JsonMember& member) {
        if (!model.holds_object(member)) fail("/model/vocab", "is not an object; expected one");
        const JsonDocument vocabulary(source_, member);
        for (const JsonMember& piece : vocabulary.members()) {
            const std::string_view text = vocabulary.text(piece);
            const auto id = number_of_text<std::uint32_t>(text);
            if (!id || *id > highest_id)
                throw Error(ErrorKind::input, vocabulary.location(piece), "is not an id, ",
                            one_line(shortened(std::string(text))),
                            "; expected an integer from 0 to ", highest_id);
            pieces_->add(*id, piece.key, [&] { return vocabulary.location(piece); });
        }
        pieces_->finish();
    }

    std::uint32_t id_of(std::string_view piece, std::size_t merge) const {
        if (const auto id = pieces_->find(piece)) return *id;
        fail_merge(merge, quoted_name(piece), " is not in the vocabulary; expected it there");
    }

    template <class... Parts>
    [[noreturn]] void fail_merge(std::size_t number, const Parts&... message) const {
        fail(concat("/model/merges/", number), message...);
    }

    /// Of "a b", or ["a", "b"]. Locations are made for errors alone: there are hundreds of
    /// thousands of merges.
    Merge read_merge(const std::vector<std::string>& strings, std::size_t number,
                     std::size_t prefix, const Merge* before) const {
        std::string_view left, right;
        if (strings.size() == 1) {
            const std::string_view both = strings[0];
            const std::size_t blank = both.find(' ');
            if (blank == both.npos || both.find(' ', blank + 1) != both.npos)
                fail_merge(number, "is not two pieces; expected one blank between them");
            left = both.substr(0, blank);
            right = both.substr(blank + 1);
        } else {
            if (strings.size() != 2)
                fail_merge(number, "is not two pieces; expected [\"a\", \"b\"]");
            left = strings[0];
            right = strings[1];
        }
        if (right.size() < prefix)
            fail_merge(number, "has a second piece without continuing_subword_prefix; expected it");
        std::string joined(left);
        joined += right.substr(prefix);
        // Most files list the merged pieces in the order of their merges.
        const std::uint32_t next = before ? before->merged + 1 : 0;
        return {id_of(left, number), id_of(right, number),
                pieces_->piece(next) == joined ? next : id_of(joined, number)};
    }

    void read_bpe(const JsonDocument& model, const Setting& settings) {
        settings.allow({"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                        "fuse_unk", "byte_fallback", "ignore_merges"});
        if (settings.has("dropout") && settings.at("dropout").number() != 0)
            throw Error(ErrorKind::unsupported, settings.at("dropout").location(),
                        "makes the tokens random; expected null");
        BpeSettings bpe;
        bpe.location = settings.location();
        if (settings.has("unk_token")) bpe.unknown = settings.at("unk_token").string();
        bpe.prefix = settings.string("continuing_subword_prefix", "");
        bpe.suffix = settings.string("end_of_word_suffix", "");
        bpe.fuses_unknown = settings.boolean("fuse_unk", false);
        bpe.falls_back_to_bytes = settings.boolean("byte_fallback", false);
        bpe.ignores_merges = settings.boolean("ignore_merges", false);
        const JsonMember* const member = model.find("merges");
        if (member == nullptr)
            fail("/model", "has no \"merges\"; expected a list of pairs of pieces");
        if (!model.holds_array(*member)) fail("/model/merges", "is not a list; expected one");
        std::vector<Merge> merges;
        std::vector<std::string> strings;
        const std::size_t prefix = bpe.prefix.size();
        std::size_t number = 0;
        model.for_each_entry(*member, [&](const JsonMember& entry) {
            read_strings(model, entry, strings);
            if (strings.size() != 1 || !strings[0].starts_with("#version"))
                merges.push_back(
                    read_merge(strings, number, prefix, merges.empty() ? nullptr : &merges.back()));
            ++number;
            return true;
        });
        parts_->model = make_bpe(pieces_, std::move(bpe), merges);
    }

    void read_word_piece(const Setting& settings) {
        settings.allow({"unk_token", "continuing_subword_prefix", "max_input_chars_per_word"});
        WordPieceSettings word_piece;
        word_piece.location = settings.location();
        word_piece.unknown = settings.string("unk_token", word_piece.unknown);
        word_piece.prefix = settings.string("continuing_subword_prefix", word_piece.prefix);
        if (settings.has("max_input_chars_per_word"))
            word_piece.longest_word =
                settings.at("max_input_chars_per_word").whole(~std::uint64_t{0});
        parts_->model = make_word_piece(pieces_, std::move(word_piece));
    }

    void read_unigram(const JsonDocument& model, const JsonMember& member,
                      const Setting& settings) {
        settings.allow({"unk_id", "byte_fallback"});
        const nlohmann::json list = model.read_value(member);
        if (!list.is_array())
            fail("/model/vocab",
                 "is not a list; expected pieces with scores, [[\"a\", -1.5], ...]");
        UnigramSettings unigram;
        unigram.location = settings.location();
        for (std::size_t i = 0; i < list.size(); ++i) {
            const auto location = [&] { return location_of("/model/vocab/" + std::to_string(i)); };
            const nlohmann::json& item = list[i];
            if (!item.is_array() || item.size() != 2 || !item[0].is_string() ||
                !item[1].is_number() || !std::isfinite(item[1].get<double>()))
                throw Error(ErrorKind::input, location(),
                            "is not a piece and its score; expected [\"a\", -1.5]");
            pieces_->add(static_cast<std::uint32_t>(i), item[0].get_ref<const std::string&>(),
                         location);
            unigram.scores.push_back(item[1].get<double>());
        }
        pieces_->finish();
        if (settings.has("unk_id")) {
            if (list.empty())
                settings.at("unk_id").fail("has no piece; expected its index in vocab");
            unigram.unknown =
                static_cast<std::uint32_t>(settings.at("unk_id").whole(list.size() - 1));
        }
        unigram.falls_back_to_bytes = settings.boolean("byte_fallback", false);
        parts_->model = make_unigram(pieces_, std::move(unigram));
    }

    void read_added_tokens() {
        std::vector<AddedToken> tokens;
        with("added_tokens", [&](const Setting& list) {
            for (const Setting& item : list.items()) {
                item.allow(
                    {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
                AddedToken& token = tokens.emplace_back();
                item.at("id").whole(highest_id);
                token.content = item.at("content").string();
                token.is_single_word = item.boolean("single_word", false);
                token.takes_left = item.boolean("lstrip", false);
                token.takes_right = item.boolean("rstrip", false);
                token.is_special = item.boolean("special", false);
                token.is_normalized = item.boolean("normalized", !token.is_special);
            }
        });
        parts_->pieces = pieces_;
        number(tokens);
        parts_->added.emplace(std::move(tokens), parts_->normalizer, location_of("/added_tokens"));
    }

    /// As tokenizers does: a token of the vocabulary has the id that it has there; others follow.
    void number(std::vector<AddedToken>& tokens) {
        std::map<std::string, std::uint32_t, std::less<>> ids;
        std::optional<std::uint32_t> highest;
        const auto size = static_cast<std::uint32_t>(pieces_->size());
        for (AddedToken& token : tokens) {
            if (token.content.empty()) continue;
            if (const auto seen = ids.find(token.content); seen != ids.end()) {
                token.id = seen->second;
                continue;
            }
            const auto found = pieces_->find(token.content);
            if (found)
                token.id = *found;
            else
                token.id = highest && (*highest >= size || size == 0) ? *highest + 1 : size;
            highest = std::max(highest.value_or(0), token.id);
            ids.emplace(token.content, token.id);
        }
    }

    const Source& source_;
    const JsonDocument document_;
    std::shared_ptr<Pieces> pieces_ = std::make_shared<Pieces>();
    std::shared_ptr<Tokenizer::Parts> parts_ = std::make_shared<Tokenizer::Parts>();
};

Tokenizer Tokenizer::from_json(const std::string& location, std::string_view text) {
    return TokenizerReader(Source{location, text}).read();
}

}  // namespace attn::io
