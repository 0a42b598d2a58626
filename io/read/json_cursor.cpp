#include "io/read/json_document.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "io/text/decimal.hpp"

namespace attn::io {
namespace {

constexpr std::uint64_t repeat(std::uint64_t byte) {
    return 0x0101010101010101u * byte;
}

/// The high bit of each byte that is `byte`; exact up to the first such byte.
constexpr std::uint64_t equal_bytes(std::uint64_t word, unsigned char byte) {
    const std::uint64_t difference = word ^ repeat(byte);
    return (difference - repeat(1)) & ~difference & repeat(0x80);
}

/// The first of `bytes` from `at` on, or the text's end. `marks` has a bit where one of eight bytes
/// is among them, exact up to the first.
template <class Marks>
std::size_t find_any(std::string_view text, std::size_t at, std::string_view bytes, Marks marks) {
    for (; at + 8 <= text.size(); at += 8) {
        const std::uint64_t found = marks(load_bytes(text.data() + at));
        if (found != 0) return at + static_cast<std::size_t>(std::countr_zero(found)) / 8;
    }
    return std::min(text.find_first_of(bytes, at), text.size());
}

std::size_t find_structure(std::string_view text, std::size_t at) {
    return find_any(text, at, "\"[]{}", [](std::uint64_t word) {
        const std::uint64_t folded = word | repeat(0x20);  // [ ] are { } less this bit
        return equal_bytes(folded, '{') | equal_bytes(folded, '}') | equal_bytes(word, '"');
    });
}

/// A quote, or a backslash in a string.
std::size_t find_quote(std::string_view text, std::size_t at) {
    return find_any(text, at, "\"\\", [](std::uint64_t word) {
        return equal_bytes(word, '"') | equal_bytes(word, '\\');
    });
}

/// The comma that causes an unexpected byte at `offset`: the one before a closing bracket, or a
/// second one; or npos.
std::size_t find_trailing_comma(std::string_view text, std::size_t offset) {
    constexpr std::string_view closing = "]}";
    if (offset == 0 || offset >= text.size()) return text.npos;
    const std::size_t before = text.find_last_not_of(JsonCursor::blanks, offset - 1);
    if (before == text.npos) return text.npos;
    if (text[before] == ',' && closing.find(text[offset]) != closing.npos) return before;
    const bool is_last = text.find_first_not_of(JsonCursor::blanks, offset + 1) == text.npos;
    return text[offset] == ',' && is_last && closing.find(text[before]) != closing.npos ? offset
                                                                                        : text.npos;
}

}  // namespace

void JsonCursor::report(std::size_t at, const std::string& message) const {
    const std::size_t comma = find_trailing_comma(text_, at);
    if (comma == text_.npos) throw Error(ErrorKind::input, source_->location(at), message);
    const std::string after = comma == at ? "the end" : std::string("'") + text_[at] + "'";
    throw Error(ErrorKind::input, source_->location(comma),
                "a trailing comma; expected none before ", after);
}

std::string_view JsonCursor::take_string() {
    const std::size_t begin = at_;
    for (std::size_t end = at_ + 1; (end = find_quote(text_, end)) < text_.size(); end += 2) {
        if (text_[end] == '\\') continue;
        at_ = end + 1;
        return text_.substr(begin, at_ - begin);
    }
    fail(begin, "a string that does not end; expected a closing '\"'");
}

std::string_view JsonCursor::take_value() {
    const std::size_t begin = at_;
    std::string closing;  // the brackets that close the open ones
    do {
        const char c = is_at_end() ? '\0' : text_[at_];
        if (c == '"') {
            take_string();
        } else if (c == '[' || c == '{') {
            closing += c == '[' ? ']' : '}';
            if (closing.size() > deepest_json)
                fail(at_, "more than ", deepest_json,
                     " nested brackets; expected at most 3 for an array");
            ++at_;
        } else if (!closing.empty() && (c == ']' || c == '}')) {
            if (c != closing.back()) fail(at_, "found '", c, "'; expected '", closing.back(), "'");
            closing.pop_back();
            ++at_;
        } else if (!closing.empty()) {
            if (is_at_end())
                fail(at_, "the text ends inside '", closing.back() == ']' ? '[' : '{',
                     "'; expected '", closing.back(), "'");
            at_ = find_structure(text_, at_ + 1);
        } else {
            at_ = std::min(text_.find_first_of("\"[]{}, \t\r\n", at_), text_.size());
            if (at_ == begin) fail("a value");
            break;
        }
    } while (!closing.empty());
    return text_.substr(begin, at_ - begin);
}

}  // namespace attn::io
