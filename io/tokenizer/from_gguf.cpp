// The tokenizer in a GGUF file. Source of the keys, of the types of tokens and of the expressions
// of words: ggml-org/llama.cpp, docs and llama-vocab.cpp.
#include <algorithm>
#include <limits>

#include "io/file/source.hpp"
#include "io/read/json_document.hpp"
#include "io/text/text.hpp"
#include "io/tokenizer/characters.hpp"

namespace attn::io {

extern const std::string_view split_rules_text;  // split_rules.ndjson

namespace {

/// How a text is split, by the names that tokenizer.ggml.pre has: with `ignores_merges` a word of
/// the vocabulary is not split; `adds_bos` is for files that do not say it.
const std::vector<nlohmann::json>& split_rules() {
    static const std::vector<nlohmann::json> rules = [] {
        std::vector<nlohmann::json> rows;
        for (const std::string_view line : lines_of(split_rules_text))
            rows.push_back(parse_own(line));
        return rows;
    }();
    return rules;
}

std::vector<std::string_view> names_of(const nlohmann::json& rule) {
    return split_text(rule["names"].get_ref<const std::string&>(), ' ');
}

/// Types of tokens.
enum : std::uint64_t {
    normal_token = 1,
    unknown_token = 2,
    control_token = 3,
    user_token = 4,
    byte_token = 6
};

constexpr const char* space_mark = "\u2581";
constexpr const char* continuation = "##";  ///< of pieces that do not begin a word

}  // namespace

class GgufTokenizerReader {
public:
    GgufTokenizerReader(const std::string& location, const nlohmann::json& metadata)
        : location_(location), root_(metadata, location) {
        parts_->location = location;
    }

    Tokenizer read() {
        const std::string model = value("model").string();
        const bool is_bert = model == "bert";
        if (model != "llama" && model != "gpt2" && model != "t5" && !is_bert)
            throw Error(ErrorKind::unsupported, value("model").location(), quoted_name(model),
                        " is not supported; expected llama, gpt2, bert or t5");
        read_tokens(is_bert);
        if (is_bert) {
            read_word_pieces();
        } else if (model == "t5") {
            read_unigram();
        } else {
            const bool adds_bos = model == "llama" || read_byte_level();
            if (model == "llama") read_scored();
            add_ends(token_if("add_bos_token", adds_bos, {"bos_token_id"}), {},
                     token_if("add_eos_token", false, {"eos_token_id"}));
        }
        std::vector<AddedToken> tokens = found_in_text();
        parts_->pieces = pieces_;
        parts_->added.emplace(std::move(tokens), Normalizer(), location_);
        return Tokenizer(std::move(parts_));
    }

private:
    bool has(const std::string& key) const { return root_.has(("tokenizer.ggml." + key).c_str()); }
    Setting value(const std::string& key) const {
        const std::string whole = "tokenizer.ggml." + key;
        return {root_.at(whole.c_str()).value(), location_ + ": " + whole};
    }
    bool boolean(const std::string& key, bool otherwise) const {
        return has(key) ? value(key).boolean() : otherwise;
    }

    /// Of `marked` tokens, those that begin a word have a mark, and others lack the ## of BERT.
    void read_tokens(bool marked) {
        const std::vector<Setting> tokens = value("tokens").items();
        count_ = tokens.size();
        read_types();
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            std::string piece = tokens[i].string();
            if (marked && piece.starts_with(space_mark))
                piece.erase(0, std::string_view(space_mark).size());
            else if (marked && type_of(i) == normal_token)
                piece.insert(0, continuation);
            pieces_->add(static_cast<std::uint32_t>(i), piece,
                         [&] { return tokens[i].location(); });
        }
        pieces_->finish();
    }

    void read_types() {
        if (!has("token_type")) return;
        for (const Setting& type : for_tokens("token_type"))
            types_.push_back(type.whole(highest_id));
    }
    std::uint64_t type_of(std::size_t id) const {
        return types_.empty() ? std::uint64_t{normal_token} : types_[id];
    }

    std::uint32_t id(const std::string& key) const {
        const Setting setting = value(key);
        if (count_ == 0) setting.fail("has no token; expected one of tokenizer.ggml.tokens");
        return static_cast<std::uint32_t>(setting.whole(count_ - 1));
    }

    /// As many as there are tokens.
    std::vector<Setting> for_tokens(const std::string& key) const {
        std::vector<Setting> items = value(key).items();
        if (items.size() != count_)
            value(key).fail("has ", items.size(), " items; expected ", count_, ", one per token");
        return items;
    }

    /// The id of the first of these keys that the file has, or of a piece.
    std::optional<std::uint32_t> id_of(std::initializer_list<const char*> keys,
                                       std::string_view piece = {}) const {
        for (const char* key : keys)
            if (has(key)) return id(key);
        return piece.empty() ? std::nullopt : pieces_->find(piece);
    }

    /// BERT's. Whether it lowers letters is not stored: its pieces show it.
    void read_word_pieces() {
        bool lowers = true;
        for (std::size_t i = 0; i < count_ && lowers; ++i) {
            const std::string_view piece = *pieces_->piece(static_cast<std::uint32_t>(i));
            lowers = type_of(i) != normal_token ||
                     std::ranges::none_of(piece, [](char c) { return c >= 'A' && c <= 'Z'; });
        }
        const nlohmann::json normalizer{{"type", "BertNormalizer"},
                                        {"clean_text", true},
                                        {"handle_chinese_chars", true},
                                        {"lowercase", lowers}},
            words{{"type", "BertPreTokenizer"}},
            decoder{{"type", "WordPiece"}, {"prefix", continuation}, {"cleanup", true}};
        parts_->normalizer = read_normalizer({normalizer, location_});
        parts_->pre_tokenizer = read_pre_tokenizer({words, location_});
        parts_->decoder = read_decoder({decoder, location_});
        WordPieceSettings settings;
        settings.location = location_;
        settings.prefix = continuation;
        if (const auto unknown = id_of({"unknown_token_id"}))
            settings.unknown = *pieces_->piece(*unknown);
        parts_->model = make_word_piece(pieces_, std::move(settings));
        const auto last = token_if("add_sep_token", boolean("add_eos_token", true),
                                   {"seperator_token_id", "eos_token_id"}, "[SEP]");
        add_ends(token_if("add_bos_token", true, {"cls_token_id", "bos_token_id"}, "[CLS]"), last,
                 last, true);
    }

    /// SentencePiece's. Only pieces of the normal type are found in a text.
    void read_unigram() {
        UnigramSettings settings;
        settings.location = location_;
        for (const Setting& score : for_tokens("scores"))
            settings.scores.push_back(type_of(settings.scores.size()) == normal_token
                                          ? score.number()
                                          : -std::numeric_limits<double>::infinity());
        settings.unknown = id_of({"unknown_token_id"}, "<unk>");
        settings.falls_back_to_bytes =
            std::ranges::find(types_, std::uint64_t{byte_token}) != types_.end();
        parts_->model = make_unigram(pieces_, std::move(settings));
        if (has("precompiled_charsmap"))
            parts_->normalizer = [map = std::make_shared<const Charsmap>(
                                      bytes_of("precompiled_charsmap"),
                                      value("precompiled_charsmap"))](TextPart& part) {
                map->normalize(part);
            };
        nlohmann::json marks{{"type", "Metaspace"}, {"replacement", space_mark}};
        const nlohmann::json decoder = marks;
        marks["prepend_scheme"] = boolean("add_space_prefix", true) ? "always" : "never";
        const nlohmann::json split{{"type", "WhitespaceSplit"}};
        nlohmann::json words{{"type", "Sequence"}, {"pretokenizers", nlohmann::json::array()}};
        if (boolean("remove_extra_whitespaces", false)) words["pretokenizers"].push_back(split);
        words["pretokenizers"].push_back(marks);
        parts_->pre_tokenizer = read_pre_tokenizer({words, location_});
        parts_->decoder = read_decoder({decoder, location_});
        const auto first = token_if("add_bos_token", false, {"bos_token_id"}),
                   last = token_if("add_eos_token", true, {"eos_token_id"}, "</s>");
        std::vector<TypedToken> between = last;  // twice in XLM-R
        if (!first.empty()) between.insert(between.end(), last.begin(), last.end());
        add_ends(first, between, last);
    }

    std::string bytes_of(const std::string& key) const {
        std::string bytes;
        for (const Setting& byte : value(key).items()) {
            const nlohmann::json& number = byte.value();
            if (!number.is_number_integer() || number < -128 || number > 255)
                byte.fail("is not a byte");
            bytes += static_cast<char>(number.get<int>());
        }
        return bytes;
    }

    void read_scored() {
        std::vector<float> scores;
        for (const Setting& score : for_tokens("scores"))
            scores.push_back(static_cast<float>(score.number()));
        parts_->model = make_scored_bpe(pieces_, std::move(scores), id_of({"unknown_token_id"}));
        const bool prepends = boolean("add_space_prefix", true);
        parts_->pre_tokenizer = [prepends](std::vector<TextPart>& words) {
            for (TextPart& word : words) {
                if (word.added) continue;
                if (prepends) word.text.insert(0, " ");
                replace_all(word.text, " ", space_mark);
            }
        };
        parts_->decoder = [prepends](std::vector<std::string> tokens, std::size_t) {
            for (std::string& token : tokens) replace_all(token, space_mark, " ");
            std::string text;
            for (const std::string& token : join_bytes(std::move(tokens), 0)) text += token;
            if (prepends && text.starts_with(' ')) text.erase(0, 1);
            return std::vector<std::string>{text};
        };
    }

    /// Whether a text begins with a token of its own where the file does not say it.
    bool read_byte_level() {
        const std::string name = has("pre") ? value("pre").string() : "default";
        const auto found = std::ranges::find_if(split_rules(), [&](const nlohmann::json& rule) {
            const std::vector<std::string_view> names = names_of(rule);
            return std::ranges::find(names, name) != names.end();
        });
        if (found == split_rules().end())
            throw Error(ErrorKind::unsupported, value("pre").location(), quoted_name(name),
                        " is not supported; expected one of ",
                        comma_list(split_rules(), [](const nlohmann::json& rule) {
                            return names_of(rule).front();
                        }));
        nlohmann::json steps = nlohmann::json::array();
        for (const nlohmann::json& expression : (*found)["expressions"])
            steps.push_back({{"type", "Split"},
                             {"pattern", {{"Regex", expression}}},
                             {"behavior", "Isolated"}});
        steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
        const nlohmann::json words{{"type", "Sequence"}, {"pretokenizers", steps}};
        parts_->pre_tokenizer = read_pre_tokenizer({words, location_});
        std::vector<Merge> merges;
        for (const Setting& item : value("merges").items()) merges.push_back(read_merge(item));
        BpeSettings settings;
        settings.location = location_;
        settings.ignores_merges = found->value("ignores_merges", false);
        parts_->model = make_bpe(pieces_, std::move(settings), merges);
        parts_->decoder = read_decoder({byte_level_, location_});
        return found->value("adds_bos", false);
    }

    Merge read_merge(const Setting& item) const {
        const std::string both = item.string();
        const std::size_t blank = both.find(' ', 1);
        if (blank == both.npos) item.fail("is not two pieces; expected one blank between them");
        const auto id_of = [&](const std::string& piece) {
            const auto found = pieces_->find(piece);
            if (!found)
                item.fail(quoted_name(piece),
                          " is not among tokenizer.ggml.tokens; expected it there");
            return *found;
        };
        const std::string left = both.substr(0, blank), right = both.substr(blank + 1);
        return {id_of(left), id_of(right), id_of(left + right)};
    }

    /// The token of id_of, if `flag` says that it is added to a text.
    std::vector<TypedToken> token_if(const char* flag, bool otherwise,
                                     std::initializer_list<const char*> keys,
                                     std::string_view piece = {}) const {
        const auto found = id_of(keys, piece);
        if (!boolean(flag, otherwise) || !found) return {};
        return {TypedToken{{*found, std::string(*pieces_->piece(*found))}, 0}};
    }

    /// Adds tokens at the beginning, between two texts, and at the end. `has_types`: the second
    /// text and the end after it are of another type.
    void add_ends(const std::vector<TypedToken>& begin, const std::vector<TypedToken>& between,
                  const std::vector<TypedToken>& end, bool has_types = false) {
        parts_->post_processor = [begin, between, end, has_types](std::vector<Encoding> texts,
                                                                  bool add_special, std::size_t) {
            if (add_special) {
                texts.front().insert(texts.front().begin(), begin.begin(), begin.end());
                if (texts.size() > 1)
                    texts.front().insert(texts.front().end(), between.begin(), between.end());
                texts.back().insert(texts.back().end(), end.begin(), end.end());
            }
            for (TypedToken& token : texts.back()) token.type = has_types && texts.size() > 1;
            return texts;
        };
    }

    /// Tokens that are found in a text before it is split.
    std::vector<AddedToken> found_in_text() const {
        std::vector<AddedToken> tokens;
        for (std::size_t i = 0; i < count_; ++i) {
            const std::uint64_t type = type_of(i);
            if (type < unknown_token || type > user_token) continue;
            AddedToken& token = tokens.emplace_back();
            token.id = static_cast<std::uint32_t>(i);
            token.content = std::string(*pieces_->piece(token.id));
            token.is_special = type != user_token;
        }
        return tokens;
    }

    const nlohmann::json byte_level_ = {{"type", "ByteLevel"}};
    const std::string location_;
    const Setting root_;
    std::size_t count_ = 0;
    std::vector<std::uint64_t> types_;  ///< by id; empty: all are normal
    std::shared_ptr<Pieces> pieces_ = std::make_shared<Pieces>();
    std::shared_ptr<Tokenizer::Parts> parts_ = std::make_shared<Tokenizer::Parts>();
};

Tokenizer Tokenizer::from_gguf(const std::string& location, const nlohmann::json& metadata) {
    if (!metadata.is_object())
        throw Error(ErrorKind::input, location, "has no metadata of a tokenizer; expected some");
    return GgufTokenizerReader(location, metadata).read();
}

}  // namespace attn::io
