// Vocabularies may have 30 MB, nearly all of it merges and scores that labels do not need: only the
// pieces are read.
#include "io/model/vocabulary.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/json_document.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

/// Bytes that are not UTF-8 as \xe2.
std::string as_utf8(std::string_view bytes) {
    std::string text;
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t size = character_size(bytes.substr(at));
        if (size == 0) {
            constexpr std::string_view digits = "0123456789abcdef";
            const auto byte = static_cast<unsigned char>(bytes[at]);
            ((text += "\\x") += digits[byte / 16]) += digits[byte % 16];
        }
        text += bytes.substr(at, size);
        at += std::max<std::size_t>(1, size);
    }
    return text;
}

bool is_byte_level(const nlohmann::json& step) {
    if (!step.is_object()) return false;
    if (step.value("type", nlohmann::json()) == "ByteLevel") return true;
    for (const char* steps : {"decoders", "pretokenizers"})
        if (step.contains(steps) && step[steps].is_array() &&
            std::ranges::any_of(step[steps], is_byte_level))
            return true;
    return false;
}

}  // namespace

class VocabularyReader {
public:
    explicit VocabularyReader(const Source& source) : source_(source) {}

    /// {"model": {"vocab": {"piece": 0, ...} or [["piece", score], ...]}, "added_tokens": [...]}
    Vocabulary read_tokenizer() {
        const JsonDocument document(source_);
        const JsonMember* const member = document.find("model");
        if (member != nullptr && document.holds_object(*member))
            read_model(JsonDocument(source_, *member));
        else
            fail_without_pieces();
        for (const char* step : {"decoder", "pre_tokenizer"})
            if (const JsonMember* const found = document.find(step))
                found_.is_byte_level_ |= is_byte_level(document.read_value(*found));
        if (const JsonMember* const added = document.find("added_tokens"))
            for (const nlohmann::json& token : document.read_value(*added)) read_added(token);
        return finish();
    }

    /// {"piece": 0, ...}
    Vocabulary read_object() {
        found_.is_byte_level_ = true;
        const JsonDocument document(source_);
        if (document.is_array())
            throw Error(ErrorKind::input, source_.name,
                        "is a list; expected an object of pieces and their ids");
        read_pieces(document);
        return finish();
    }

    Vocabulary read_lines() {
        std::uint64_t id = 0;
        for (std::string_view line : lines_of(source_.text)) {
            if (line.ends_with('\r')) line.remove_suffix(1);
            add(id++, line, false);
        }
        return finish();
    }

private:
    void add(std::uint64_t id, std::string_view piece, bool is_added) {
        // Output with such a label could not be read back.
        constexpr std::size_t longest = std::size_t{1} << 20;
        if (piece.size() > longest)
            throw Error(ErrorKind::input, source_.name, "a piece of more than 1 MiB at id ", id,
                        "; expected the pieces of a tokenizer");
        const std::size_t begin = found_.text_.size();
        found_.text_ += piece;
        found_.entries_.push_back({id, begin, found_.text_.size(), is_added});
    }

    [[noreturn]] void fail_without_pieces() const {
        throw Error(ErrorKind::input, source_.name,
                    "has no model.vocab; expected the pieces of a tokenizer there");
    }

    void read_model(const JsonDocument& model) {
        const JsonMember* const pieces = model.find("vocab");
        if (pieces == nullptr) fail_without_pieces();
        if (model.holds_object(*pieces)) return read_pieces(JsonDocument(source_, *pieces));
        if (!model.holds_array(*pieces)) fail_without_pieces();
        std::uint64_t id = 0;
        model.for_each_entry(*pieces, [&](const JsonMember& entry) {
            std::string piece;
            bool has_piece = false;
            if (model.holds_array(entry))
                model.for_each_entry(entry, [&](const JsonMember& first) {
                    nlohmann::json value = model.read_value(first);
                    has_piece = value.is_string();
                    if (has_piece) piece = std::move(value.get_ref<std::string&>());
                    return false;
                });
            if (!has_piece)
                throw Error(ErrorKind::input, model.location(entry),
                            "is not a piece and its score; expected [\"a\", -1.5]");
            add(id++, piece, false);
            return true;
        });
    }

    void read_pieces(const JsonDocument& pieces) {
        for (const JsonMember& piece : pieces.members()) {
            if (!pieces.is_short_whole(piece))
                throw Error(ErrorKind::input, pieces.location(piece), "found ",
                            excerpt(source_.text, piece.begin), "; expected an integer id");
            add(pieces.read_value(piece).get<std::uint64_t>(), piece.key, false);
        }
    }

    void read_added(const nlohmann::json& token) {
        if (!token.is_object() || !token.value("id", nlohmann::json()).is_number_unsigned() ||
            !token.value("content", nlohmann::json()).is_string())
            throw Error(ErrorKind::input, source_.name,
                        "has an item of added_tokens without id or content; expected both");
        add(token["id"].get<std::uint64_t>(), token["content"].get_ref<const std::string&>(), true);
    }

    /// Added tokens take precedence over the vocabulary's pieces.
    Vocabulary finish() {
        const auto is_before = [](const Vocabulary::Entry& a, const Vocabulary::Entry& b) {
            return std::pair(a.id, b.is_added) < std::pair(b.id, a.is_added);
        };
        std::ranges::stable_sort(found_.entries_, is_before);
        return std::move(found_);
    }

    const Source& source_;
    Vocabulary found_;
};

std::string Vocabulary::piece(std::uint64_t id) const {
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), id,
                                        [](const Entry& a, std::uint64_t b) { return a.id < b; });
    if (found == entries_.end() || found->id != id) return std::to_string(id);
    const auto piece = std::string_view(text_).substr(found->begin, found->end - found->begin);
    return is_byte_level_ && !found->is_added ? as_utf8(from_byte_alphabet(piece))
                                              : std::string(piece);
}

std::string vocabulary_beside(const std::string& path) {
    for (const char* name : {"tokenizer.json", "vocab.json", "vocab.txt"})
        if (std::string file = path_beside(path, name); path_exists(file)) return file;
    return "";
}

std::shared_ptr<const Vocabulary> read_vocabulary(const std::string& path, const Access& access) {
    const Source source = read_source(path, access);
    VocabularyReader reader(source);
    const bool is_tokenizer = last_part(path) == "tokenizer.json";
    return std::make_shared<const Vocabulary>(is_tokenizer             ? reader.read_tokenizer()
                                              : path.ends_with(".txt") ? reader.read_lines()
                                                                       : reader.read_object());
}

}  // namespace attn::io
