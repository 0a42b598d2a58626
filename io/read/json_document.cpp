#include "io/read/json_document.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/text_table.hpp"
#include "io/read/json_array.hpp"
#include "io/read/json_copy.hpp"
#include "io/read/json_rows.hpp"
#include "io/text/decimal.hpp"
#include "io/text/utf8.hpp"

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

constexpr bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// The first bracket or quote from `at` on, or the text's end.
std::size_t find_structure(std::string_view text, std::size_t at) {
    for (; text.size() - at >= 8; at += 8) {
        const std::uint64_t word = load_bytes(text.data() + at);
        const std::uint64_t folded = word | repeat(0x20);  // [ ] are { } less this bit
        const std::uint64_t found =
            equal_bytes(folded, '{') | equal_bytes(folded, '}') | equal_bytes(word, '"');
        if (found != 0) return at + static_cast<std::size_t>(std::countr_zero(found)) / 8;
    }
    return std::min(text.find_first_of("\"[]{}", at), text.size());
}

/// The contents of a string without escapes.
std::optional<std::string_view> plain_text(std::string_view text) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
    const std::string_view inside = text.substr(1, text.size() - 2);
    const bool plain = std::all_of(inside.begin(), inside.end(), [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    });
    return plain ? std::optional(inside) : std::nullopt;
}

/// The number of four hexadecimal digits.
std::optional<char32_t> code_of(std::string_view digits) {
    unsigned code = 0;
    const char* const end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, code, 16);
    return digits.size() == 4 && error == std::errc() && at == end ? std::optional<char32_t>(code)
                                                                   : std::nullopt;
}
}  // namespace

std::optional<std::string> simple_string(std::string_view text) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
    text = text.substr(1, text.size() - 2);
    std::string contents;
    for (;;) {
        const auto special = std::find_if(text.begin(), text.end(), [](char c) {
            return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
        });
        contents.append(text.begin(), special);
        text.remove_prefix(static_cast<std::size_t>(special - text.begin()));
        if (text.empty()) return contents;
        if (text[0] != '\\') return std::nullopt;
        constexpr std::string_view names = "\"\\/bfnrt", characters = "\"\\/\b\f\n\r\t";
        const std::size_t name = text.size() == 1 ? names.npos : names.find(text[1]);
        if (name != names.npos) {
            contents += characters[name];
            text.remove_prefix(2);
            continue;
        }
        const bool is_code = text.size() >= 6 && text[1] == 'u';
        const auto code = is_code ? code_of(text.substr(2, 4)) : std::nullopt;
        if (!code || (*code >= 0xd800 && *code < 0xe000)) return std::nullopt;
        append_utf8(contents, *code);
        text.remove_prefix(6);
    }
}

namespace {

/// An integer of few enough digits to fit in 64 bits.
bool is_short_whole(std::string_view text) {
    constexpr std::size_t max_digits = 18;
    return !text.empty() && text.size() <= max_digits && (text[0] != '0' || text.size() == 1) &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// The most common values of requests: strings with simple escapes, short integers, true, false.
std::optional<nlohmann::json> plain_value(std::string_view text) {
    if (auto string = simple_string(text)) return std::move(*string);
    if (is_short_whole(text)) {
        std::uint64_t value = 0;
        for (char c : text) value = 10 * value + static_cast<std::uint64_t>(c - '0');
        return value;
    }
    if (text == "true" || text == "false") return text == "true";
    return std::nullopt;
}

}  // namespace

bool has_too_many_values(std::string_view json) {
    return json.size() > max_json_values && json.front() != '"' &&
           count_marks(json.data(), json.data() + json.size(), ",") > max_json_values;
}

template <class Json>
Json parse_own(std::string_view text) {
    return Json::parse(text.data(), text.data() + text.size());
}
template nlohmann::json parse_own(std::string_view);
template nlohmann::ordered_json parse_own(std::string_view);

JsonDocument::JsonDocument(const Source& source) : source_(source) {
    begin_ = skip_space(0);
    const char first = source_.text[begin_];
    if (first == '[')
        is_array_ = true;
    else if (first == '{')
        check_end(read_members(begin_ + 1));
    else
        fail(begin_, "found " + excerpt(source_.text, begin_) +
                         "; expected JSON: a matrix [[...], ...] or a request {...}");
}

JsonDocument::JsonDocument(const Source& source, const JsonMember& member)
    : source_(source), is_array_(source.text[member.begin] == '['), begin_(member.begin) {
    if (!is_array_) read_members(begin_ + 1);
}

JsonDocument JsonDocument::as_far_as_it_reads(const Source& source) {
    JsonDocument document(source, Unread{});
    try {
        document.begin_ = document.skip_space(0);
        if (document.begin_ < source.text.size() && source.text[document.begin_] == '{')
            document.read_members(document.begin_ + 1);
    } catch (const Error&) {
        // The members read so far are in the document.
    }
    return document;
}

const JsonMember* JsonDocument::find(const std::string& key) const {
    const auto found = std::find_if(members_.begin(), members_.end(),
                                    [&](const JsonMember& m) { return m.key == key; });
    return found == members_.end() ? nullptr : &*found;
}

NumberArray JsonDocument::read_array(const ArrayRules& rules, ThreadPool* workers,
                                     std::size_t piece_size) const {
    const std::size_t end = source_.text.find_last_not_of(" \t\r\n") + 1;
    auto regular = read_json_rows(source_.text.substr(begin_, end - begin_), rules, Outermost::list,
                                  workers, piece_size);
    if (regular) return std::move(*regular);
    check_end(skip_value(begin_));
    return JsonArrayReader(source_, begin_, rules).read();
}

NumberArray JsonDocument::read_array(const JsonMember& member, const ArrayRules& rules,
                                     ThreadPool* workers, std::size_t piece_size) const {
    auto regular = read_json_rows(text(member), rules, Outermost::list, workers, piece_size,
                                  source_.text.size() - member.end);
    if (regular) return std::move(*regular);
    return JsonArrayReader(source_, member.begin, rules).read();
}

void JsonDocument::for_each_entry(const JsonMember& list,
                                  FunctionRef<bool(const JsonMember&)> take) const {
    JsonMember entry = list;
    std::size_t at = skip_space(list.begin + 1);
    while (at < list.end && source_.text[at] != ']') {
        entry.begin = at;
        entry.end = skip_value(at);
        if (entry.end == at) fail(at, "found " + excerpt(source_.text, at) + "; expected a value");
        at = skip_space(entry.end);
        const bool is_last = source_.text[at] == ']';
        if (!is_last && source_.text[at] != ',')
            fail(at, "found " + excerpt(source_.text, at) + "; expected ',' or ']'");
        if (!is_last) at = skip_space(at + 1);
        if (!is_last && source_.text[at] == ']') fail(at, "found ']'; expected a value");
        if (!take(entry)) return;
    }
}

bool JsonDocument::is_short_whole(const JsonMember& member) const {
    return io::is_short_whole(text(member));
}

bool JsonDocument::is_plain(const JsonMember& member) const {
    const std::string_view value = text(member);
    return io::is_short_whole(value) ||
           (plain_text(value) &&
            std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; }));
}

nlohmann::json JsonDocument::read_value(const JsonMember& member) const {
    return parse(member.begin, member.end);
}

std::string JsonDocument::copied(const JsonMember& member) const {
    return copy_json(source_, member.begin, member.end);
}

nlohmann::json JsonDocument::shown_value(const JsonMember& member) const {
    if (member.key != passed_on_key) return read_value(member);
    try {
        return read_value(member);
    } catch (const Error&) {
        return std::string(text(member));
    }
}

nlohmann::json JsonDocument::read_values() const {
    nlohmann::json values = nlohmann::json::object();
    check_values(source_.text.substr(begin_), begin_);
    for (const JsonMember& member : members_) values[member.key] = shown_value(member);
    return values;
}

void JsonDocument::fail(std::size_t offset, const std::string& message) const {
    fail_in_json(source_, offset, message);
}

void JsonDocument::check_end(std::size_t at) const {
    at = skip_space(at);
    if (at != source_.text.size())
        fail(at, "found " + excerpt(source_.text, at) + "; expected the end of the text" +
                     (source_.text[at] == '{' ? ", or attn batch for several requests" : ""));
}

std::size_t JsonDocument::skip_space(std::size_t at) const {
    while (at < source_.text.size() && is_space(source_.text[at])) ++at;
    return at;
}

std::size_t JsonDocument::skip_string(std::size_t at) const {
    const std::string_view text = source_.text;
    for (std::size_t end = at + 1; end < text.size(); ++end) {
        if (text[end] == '"') return end + 1;
        if (text[end] == '\\') ++end;
    }
    fail(at, "a string that does not end; expected a closing '\"'");
}

/// The end of the value at `at`. Brackets are matched and strings skipped; the rest is checked by
/// whoever reads the value.
std::size_t JsonDocument::skip_value(std::size_t at) const {
    const std::string_view text = source_.text;
    const std::size_t start = at;
    std::string open;  // the open brackets
    while (at < text.size()) {
        const char c = text[at];
        if (c == '"') {
            at = skip_string(at);
        } else if (c == '[' || c == '{') {
            open += c;
            if (open.size() > deepest_json)
                fail(at, "more than " + std::to_string(deepest_json) +
                             " nested brackets; expected at most 3 for an array");
            ++at;
        } else if (c == ']' || c == '}') {
            if (open.empty()) break;
            if ((c == ']') != (open.back() == '['))
                fail(at, std::string("found '") + c + "'; expected '" +
                             (open.back() == '[' ? ']' : '}') + "'");
            open.pop_back();
            ++at;
        } else if (open.empty() && (c == ',' || is_space(c))) {
            break;
        } else {
            at = open.empty() ? std::min(text.find_first_of("\"[]{}, \t\r\n", at + 1), text.size())
                              : find_structure(text, at + 1);
            continue;
        }
        if (open.empty()) return at;
    }
    if (!open.empty())
        fail(text.size(), std::string("the text ends inside '") + open.back() + "'; expected '" +
                              (open.back() == '[' ? ']' : '}') + "'");
    if (at == start) fail(at, "found " + excerpt(text, at) + "; expected a value");
    return at;
}

/// Reads "key": value, ... up to the closing brace; returns the offset after it.
std::size_t JsonDocument::read_members(std::size_t at) {
    const std::string_view text = source_.text;
    TextTable later_keys;
    const auto key_of = [&](std::uint32_t i) -> std::string_view { return members_[i].key; };
    const auto stands_already = [&](const std::string& key) {
        // Most objects are small and need no table.
        const auto early = std::min<std::ptrdiff_t>(16, std::ssize(members_));
        if (std::any_of(members_.begin(), members_.begin() + early,
                        [&](const JsonMember& m) { return m.key == key; }))
            return true;
        if (early < 16) return false;
        if (later_keys.find(key, [&](std::uint32_t i) { return key_of(i) == key; })) return true;
        later_keys.add(key, static_cast<std::uint32_t>(members_.size()), key_of);
        return false;
    };
    at = skip_space(at);
    if (at < text.size() && text[at] == '}') return at + 1;
    members_.reserve(8);  // more than most requests have
    for (;;) {
        JsonMember member;
        member.key_offset = at = skip_space(at);
        if (at == text.size() || text[at] != '"')
            fail(at, "found " + excerpt(text, at) + "; expected a key in double quotes");
        at = skip_string(at);
        const auto plain_key = plain_text(text.substr(member.key_offset, at - member.key_offset));
        member.key = plain_key ? *plain_key : parse(member.key_offset, at).get<std::string>();
        if (members_.size() == max_json_keys)
            fail(member.key_offset,
                 "more than " + std::to_string(max_json_keys) + " keys; expected fewer");
        if (stands_already(member.key))
            fail(member.key_offset,
                 "the key \"" + shortened(member.key) + "\" appears twice; expected it once");
        at = skip_space(at);
        if (at == text.size() || text[at] != ':')
            fail(at, "found " + excerpt(text, at) + "; expected ':'");
        member.begin = skip_space(at + 1);
        at = member.end = skip_value(member.begin);
        // Lists and objects may be large and are checked when they are read; other values now.
        const bool is_large = text[member.begin] == '[' || text[member.begin] == '{';
        const std::string_view value = this->text(member);
        if (!is_large && !plain_text(value) && !io::is_short_whole(value)) {
            if (member.key == passed_on_key)
                copied(member);
            else
                read_value(member);
        }
        members_.push_back(std::move(member));
        at = skip_space(at);
        if (at < text.size() && text[at] == '}') return at + 1;
        if (at == text.size() || text[at] != ',')
            fail(at, "found " + excerpt(text, at) + "; expected ',' or '}'");
        ++at;
    }
}

void JsonDocument::check_values(std::string_view value, std::size_t at) const {
    if (has_too_many_values(value))
        fail(at, "more than " + std::to_string(max_json_values) +
                     " values in a list or object; expected fewer");
}

namespace {

/// The text with -Infinity, which Python and arrays write without quotes, as a string.
std::string with_quoted_infinities(std::string_view text) {
    constexpr std::string_view infinity = "-Infinity";
    std::string quoted;
    bool is_in_string = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (!is_in_string && text.substr(at).starts_with(infinity)) {
            ((quoted += '"') += infinity) += '"';
            at += infinity.size() - 1;
            continue;
        }
        is_in_string = is_in_string != (text[at] == '"');
        quoted += text[at];
        if (is_in_string && text[at] == '\\' && at + 1 < text.size()) quoted += text[++at];
    }
    return quoted;
}

}  // namespace

nlohmann::json JsonDocument::parse(std::size_t begin, std::size_t end) const {
    if (auto plain = plain_value(source_.text.substr(begin, end - begin))) return std::move(*plain);
    const char* text = source_.text.data();
    check_values({text + begin, end - begin}, begin);
    try {
        return parse_own({text + begin, end - begin});
    } catch (const nlohmann::json::parse_error& error) {
        const std::string quoted = with_quoted_infinities({text + begin, end - begin});
        if (nlohmann::json::accept(quoted.data(), quoted.data() + quoted.size()))
            return parse_own(quoted);
        // byte counts from 1 and may be one past the end.
        const std::size_t at = begin + (error.byte == 0 ? 0 : error.byte - 1);
        fail(std::min(at, source_.text.size()),
             "found " + excerpt(source_.text, std::min(at, end)) + "; expected a JSON value");
    } catch (const nlohmann::json::out_of_range&) {
        fail(begin, "a number beyond float64's range; expected at most 1.7976931348623157e308");
    }
}

}  // namespace attn::io
