// Vocabularies may have 30 MB, nearly all of it merges and scores that labels do not need: one pass
// over the text keeps the pieces and skips the rest.
#include "io/model/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/json_cursor.hpp"
#include "io/read/json_document.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

/// GPT-2's alphabet: printable bytes are themselves, and the others, in order, are the characters
/// from U+0100 on. Source: bytes_to_unicode of openai/gpt-2, encoder.py.
constexpr bool spells_itself(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}
constexpr char32_t first_other = 0x100;
constexpr auto other_bytes = [] {
    std::array<unsigned char, 68> bytes{};
    std::size_t count = 0;
    for (unsigned byte = 0; byte < 0x100; ++byte)
        if (!spells_itself(byte)) bytes[count++] = static_cast<unsigned char>(byte);
    return bytes;
}();

/// The bytes that a piece of this alphabet encodes; the piece itself if it has other characters.
std::string spelled_bytes(std::string_view piece) {
    std::string bytes;
    for (std::string_view rest = piece; !rest.empty();) {
        const char32_t code = take_character(rest);
        if (code < first_other && spells_itself(static_cast<unsigned>(code)))
            bytes += static_cast<char>(code);
        else if (code >= first_other && code - first_other < other_bytes.size())
            bytes += static_cast<char>(other_bytes[code - first_other]);
        else
            return std::string(piece);
    }
    return bytes;
}

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

}  // namespace

/// A forward reader of JSON, which reads what it is asked for and skips the rest.
class JsonScanner {
public:
    explicit JsonScanner(const Source& source) : source_(source), cursor_(source) {}

    char next() { return cursor_.peek(); }
    bool take(char c) { return cursor_.take(c); }
    void expect(char c) {
        if (!take(c)) cursor_.fail(std::string("'") + c + "'");
    }

    /// A string with its quotes and escapes.
    std::string_view raw_string() {
        if (next() != '"') cursor_.fail("a quoted string");
        return cursor_.take_string();
    }

    std::string string() { return unescaped(raw_string()); }

    std::uint64_t whole() {
        next();
        std::uint64_t number = 0;
        const std::string_view rest = cursor_.rest();
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
        if (error != std::errc{}) cursor_.fail("an integer id");
        cursor_.skip(static_cast<std::size_t>(end - rest.data()));
        return number;
    }

    /// The text of a value of any kind.
    std::string_view skip() {
        next();
        return cursor_.take_value();
    }

    /// The members of an object; `take` reads each value.
    template <class Take>
    void for_each_member(const Take& take_value) {
        expect('{');
        if (take('}')) return;
        do {
            const std::string_view key = raw_string();
            expect(':');
            take_value(key);
        } while (take(','));
        expect('}');
    }

    template <class Take>
    void for_each_item(const Take& take_item) {
        expect('[');
        if (take(']')) return;
        do take_item();
        while (take(','));
        expect(']');
    }

    std::string unescaped(std::string_view raw) const {
        if (raw.find('\\') == std::string_view::npos)
            return std::string(raw.substr(1, raw.size() - 2));
        return parsed(raw).get<std::string>();
    }

    /// A small part of the text as a document.
    nlohmann::json parsed(std::string_view value) const {
        const std::string object = "{\"value\":" + std::string(value) + "}";
        const Source source{source_.name, object};
        return JsonDocument(source).read_values()["value"];
    }

    void expect_end() {
        if (next() != '\0') cursor_.fail("the end of the text");
    }

private:
    const Source& source_;
    JsonCursor cursor_;
};

namespace {

bool is_byte_level(const nlohmann::json& step) {
    if (!step.is_object()) return false;
    if (step.value("type", nlohmann::json()) == "ByteLevel") return true;
    for (const char* steps : {"decoders", "pretokenizers"})
        if (step.contains(steps) && step[steps].is_array() &&
            std::any_of(step[steps].begin(), step[steps].end(), is_byte_level))
            return true;
    return false;
}

}  // namespace

class VocabularyReader {
public:
    explicit VocabularyReader(const Source& source) : source_(source), scan_(source) {}

    /// {"model": {"vocab": {"piece": 0, ...} or [["piece", score], ...]}, "added_tokens": [...]}
    Vocabulary read_tokenizer() {
        bool has_pieces = false;
        scan_.for_each_member([&](std::string_view key) {
            if (key == "\"model\"" && scan_.next() == '{')
                scan_.for_each_member([&](std::string_view inner) {
                    if (inner != "\"vocab\"") return void(scan_.skip());
                    has_pieces = true;
                    scan_.next() == '[' ? read_list() : read_pieces();
                });
            else if (key == "\"added_tokens\"" && scan_.next() == '[')
                read_added();
            else if (key == "\"decoder\"" || key == "\"pre_tokenizer\"")
                found_.is_byte_level_ |= is_byte_level(scan_.parsed(scan_.skip()));
            else
                scan_.skip();
        });
        if (!has_pieces)
            throw Error(ErrorKind::input, source_.name,
                        "has no model.vocab; expected the pieces of a tokenizer there");
        scan_.expect_end();
        return finish();
    }

    /// {"piece": 0, ...}
    Vocabulary read_object() {
        found_.is_byte_level_ = true;
        read_pieces();
        scan_.expect_end();
        return finish();
    }

    Vocabulary read_lines() {
        std::uint64_t id = 0;
        for (std::string_view rest = source_.text; !rest.empty(); ++id) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            std::string_view line = rest.substr(0, end);
            if (line.ends_with('\r')) line.remove_suffix(1);
            add(id, line, false);
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        return finish();
    }

private:
    void add(std::uint64_t id, std::string_view piece, bool is_added) {
        // Output with such a label could not be read back.
        constexpr std::size_t longest = std::size_t{1} << 20;
        if (piece.size() > longest)
            throw Error(ErrorKind::input, source_.name,
                        "a piece of more than 1 MiB at id " + std::to_string(id) +
                            "; expected the pieces of a tokenizer");
        const std::size_t begin = found_.text_.size();
        found_.text_ += piece;
        found_.places_.push_back({id, begin, found_.text_.size(), is_added});
    }

    void read_pieces() {
        scan_.for_each_member([&](std::string_view key) {
            const std::uint64_t id = scan_.whole();
            add(id, scan_.unescaped(key), false);
        });
    }

    void read_list() {
        std::uint64_t id = 0;
        scan_.for_each_item([&] {
            scan_.expect('[');
            add(id++, scan_.string(), false);
            while (scan_.take(',')) scan_.skip();
            scan_.expect(']');
        });
    }

    void read_added() {
        scan_.for_each_item([&] {
            std::optional<std::uint64_t> id;
            std::string content;
            scan_.for_each_member([&](std::string_view key) {
                if (key == "\"id\"")
                    id = scan_.whole();
                else if (key == "\"content\"")
                    content = scan_.string();
                else
                    scan_.skip();
            });
            if (id) add(*id, content, true);
        });
    }

    /// Added tokens take precedence over the vocabulary's pieces.
    Vocabulary finish() {
        const auto is_before = [](const Vocabulary::Place& a, const Vocabulary::Place& b) {
            return std::pair(a.id, b.is_added) < std::pair(b.id, a.is_added);
        };
        std::stable_sort(found_.places_.begin(), found_.places_.end(), is_before);
        return std::move(found_);
    }

    const Source& source_;
    JsonScanner scan_;
    Vocabulary found_;
};

std::string Vocabulary::piece(std::uint64_t id) const {
    const auto place = std::lower_bound(places_.begin(), places_.end(), id,
                                        [](const Place& a, std::uint64_t b) { return a.id < b; });
    if (place == places_.end() || place->id != id) return std::to_string(id);
    const auto piece = std::string_view(text_).substr(place->begin, place->end - place->begin);
    return is_byte_level_ && !place->is_added ? as_utf8(spelled_bytes(piece)) : std::string(piece);
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
