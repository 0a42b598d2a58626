// JSON texts: documents go through nlohmann_json, arrays of numbers through our own reader, which
// knows the location of each number and accepts Python's bare NaN and Infinity. No other file
// passes text to nlohmann_json's parser. The parser limits neither the depth, by which copying and
// writing recurse, nor the memory, about thirty times the text's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/function_ref.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/source.hpp"
#include "io/read/number_array.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

inline constexpr std::size_t deepest_json = 64;                       ///< brackets in a value
inline constexpr std::size_t max_json_values = std::size_t{1} << 21;  ///< of a value
inline constexpr std::size_t max_json_keys = std::size_t{1} << 19;  ///< of an object in a document

/// The key whose value is passed on as it is written. Its numbers are not read.
inline constexpr std::string_view passed_on_key = "meta";

/// Whether a value is a list or object with more commas than that. Arrays of numbers may have them.
bool has_too_many_values(std::string_view json);

/// The contents of a JSON string without escapes of surrogates; nothing for any other text.
std::optional<std::string> simple_string(std::string_view text);

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

    bool is_array() const { return is_array_; }
    const std::vector<JsonMember>& members() const { return members_; }
    const JsonMember* find(const std::string& key) const;

    /// "file:line:column" of a member's value.
    std::string place(const JsonMember& member) const { return source_.place(member.begin); }

    /// The root array, or one member, as a rectangular array of numbers. Errors: those of
    /// JsonArrayReader, and for the root those of the constructor.
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

    /// The same, checked, without the blanks between its tokens: see copy_json().
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

    [[noreturn]] void fail(std::size_t offset, const std::string& message) const;
    std::size_t skip_space(std::size_t at) const;
    std::size_t skip_string(std::size_t at) const;
    std::size_t skip_value(std::size_t at) const;
    void check_end(std::size_t at) const;
    std::size_t read_members(std::size_t at);
    void check_values(std::string_view value, std::size_t at) const;
    nlohmann::json parse(std::size_t begin, std::size_t end) const;

    const Source& source_;
    bool is_array_ = false;
    std::size_t begin_ = 0;
    std::vector<JsonMember> members_;
};

}  // namespace attn::io
