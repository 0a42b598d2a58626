// A cursor in a JSON text, which moves from token to token.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "core/base/error.hpp"
#include "core/base/function_ref.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/source.hpp"
#include "io/read/number_array.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

inline constexpr std::size_t deepest_json = 64;  ///< brackets in a value

class JsonCursor {
public:
    static constexpr std::string_view blanks = " \t\r\n";

    /// The text is treated as ending at `end`. The source must outlive the cursor.
    explicit JsonCursor(const Source& source, std::size_t at = 0,
                        std::size_t end = std::string_view::npos)
        : source_(&source), text_(source.text.substr(0, end)), at_(at) {}

    std::size_t at() const { return at_; }
    bool is_at_end() const { return at_ == text_.size(); }
    std::string_view rest() const { return text_.substr(at_); }
    void skip(std::size_t bytes) { at_ += bytes; }

    /// The first byte that is not blank, to which it moves; zero at the end.
    char peek() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                      text_[at_] == '\r' || text_[at_] == '\t'))
            ++at_;
        return is_at_end() ? '\0' : text_[at_];
    }

    /// Moves behind `c` if it is next.
    bool take(char c) {
        if (peek() != c || is_at_end()) return false;
        ++at_;
        return true;
    }

    /// Moves behind the string, or the value, that begins here, and returns its text. Of a value
    /// brackets are matched and strings skipped; whoever reads it checks the rest.
    std::string_view take_string();
    std::string_view take_value();

    /// Reports `message` at a byte; a trailing comma is reported as such, at its own location. Kind
    /// input.
    template <class... Parts>
    [[noreturn]] void fail(std::size_t at, const Parts&... message) const {
        report(at, concat(message...));
    }

    /// "found X; expected ...", of what is here.
    template <class... Parts>
    [[noreturn]] void fail(std::string_view expected, const Parts&... more) const {
        fail(at_, "found ", excerpt(text_, at_), "; expected ", expected, more...);
    }

private:
    [[noreturn]] void report(std::size_t at, const std::string& message) const;

    const Source* source_;
    std::string_view text_;
    std::size_t at_;
};

// JSON texts: documents go through nlohmann_json, arrays of numbers through our own reader, which
// knows the location of each number and accepts Python's bare NaN and Infinity. The parser limits
// neither the depth, by which copying and writing recurse, nor the memory, about thirty times the
// text's.

inline constexpr std::size_t max_json_values = std::size_t{1} << 21;  ///< of a value
inline constexpr std::size_t max_json_keys = std::size_t{1} << 19;  ///< of an object in a document

/// The key whose value is passed on as it is written. Its numbers are not read.
inline constexpr std::string_view passed_on_key = "meta";

/// Whether a value is a list or object with more commas than that. Arrays of numbers may have them.
bool has_too_many_values(std::string_view json);

/// Text that attn itself wrote, or that is part of the program. For nlohmann's json and
/// ordered_json; no other file compiles their parsers. Errors: nlohmann's.
template <class Json = nlohmann::json>
Json parse_own(std::string_view text);

/// One member of the document's object, not parsed yet: text[begin, end).
struct JsonMember {
    std::string key;
    std::size_t key_offset = 0, begin = 0, end = 0;
};

/// A JSON text whose root is an array or an object. Of an object only the top level is parsed at
/// once; arrays are parsed on demand, so that unused large arrays of a result cost nothing.
class JsonDocument {
public:
    /// `source` must outlive the document. Errors: kind input, with file:line:column, if the text
    /// is not JSON, is truncated, repeats a key or continues after its end.
    explicit JsonDocument(const Source& source);

    /// A member that is an array or an object, as a separate document.
    JsonDocument(const Source& source, const JsonMember& member);

    /// The members of an invalid object before its error; none of anything else.
    static JsonDocument as_far_as_it_reads(const Source& source);

    /// Whether its text is that of the source, and not made of it.
    bool is_of(const Source& source) const { return &source == &source_; }
    bool is_array() const { return is_array_; }
    const std::vector<JsonMember>& members() const { return members_; }
    const JsonMember* find(const std::string& key) const;

    /// "file:line:column" of a member's value.
    std::string location(const JsonMember& member) const { return source_.location(member.begin); }

    /// The root array, or one member, as a rectangular array of numbers. Errors: those of
    /// read_json_array, and for the root those of the constructor.
    NumberArray read_array(const ArrayRules& rules, ThreadPool* workers = nullptr,
                           std::size_t piece_size = default_piece) const;
    NumberArray read_array(const JsonMember& member, const ArrayRules& rules,
                           ThreadPool* workers = nullptr,
                           std::size_t piece_size = default_piece) const;

    /// Calls `take` with each entry of a list, not parsed and with the list's key, while it returns
    /// true.
    void for_each_entry(const JsonMember& list, FunctionRef<bool(const JsonMember&)> take) const;

    bool holds_array(const JsonMember& member) const { return source_.text[member.begin] == '['; }
    bool holds_object(const JsonMember& member) const { return source_.text[member.begin] == '{'; }

    /// A member's value as it is written.
    std::string_view text(const JsonMember& member) const {
        return source_.text.substr(member.begin, member.end - member.begin);
    }

    /// The same, without the blanks between its tokens. Numbers are not read: 1.0, 1e400 and 2^70
    /// stay as they are written. Errors: kind input for text that is not JSON.
    std::string copied(const JsonMember& member) const;

    /// Whether the value is an unsigned integer of few enough digits to fit in 64 bits.
    bool is_short_whole(const JsonMember& member) const;

    /// Whether all JSON writers write the value in the same way: a short integer, or a string of
    /// printable ASCII without escapes.
    bool is_plain(const JsonMember& member) const;

    /// A member as a document of nlohmann's. Errors: kind input, for more than max_json_values.
    nlohmann::json read_value(const JsonMember& member) const;

    /// The same to be shown; the value of passed_on_key is its text if a number is out of range.
    nlohmann::json shown_value(const JsonMember& member) const;

    /// All members of an object, as shown_value() has them.
    nlohmann::json read_values() const;

private:
    struct Unread {};
    JsonDocument(const Source& source, Unread) : source_(source) {}

    void require_end(JsonCursor& cursor) const;
    void read_members(JsonCursor& cursor);
    void check_values(std::string_view value, std::size_t at) const;
    nlohmann::json parse(std::string_view text, std::size_t at) const;

    const Source& source_;
    bool is_array_ = false;
    std::size_t begin_ = 0;
    std::vector<JsonMember> members_;
};

// One JSON array of numbers, of any depth, directly into memory: a regular one on all workers, any
// other with exact errors.

/// The array at `begin`. Besides JSON's numbers it accepts Python's bare NaN, Infinity and
/// -Infinity, and the same words as strings, as attn writes them. Errors: kind input, with
/// file:line:column, for ragged rows, empty rows, a wrong rank, anything that is not a number, and
/// numbers that violate the rules.
NumberArray read_json_array(const Source& source, std::size_t begin, const ArrayRules& rules);

/// The array in `text`, from its first bracket to its last; empty if anything in it is unexpected.
/// The numbers equal those of read_json_array. `bytes_after` the text are readable: then its last
/// numbers are read as fast as the others.
std::optional<NumberArray> read_json_rows(std::string_view text, const ArrayRules& rules,
                                          ThreadPool* workers = nullptr,
                                          std::size_t piece_size = default_piece,
                                          std::size_t bytes_after = 0);

/// The integers of a list of integers from 0; nothing for any other value.
std::optional<std::vector<std::size_t>> unsigned_list(const nlohmann::json& value);

}  // namespace attn::io
