#include "io/read/json_document.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base/names.hpp"
#include "core/base/text_table.hpp"
#include "io/text/number_text.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

/// The contents of a string without escapes.
std::optional<std::string_view> plain_text(std::string_view text) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
    const std::string_view inside = text.substr(1, text.size() - 2);
    const bool plain = std::ranges::all_of(inside, [](char c) {
        return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    });
    return plain ? std::optional(inside) : std::nullopt;
}

/// The number of four hexadecimal digits.
std::optional<char32_t> code_of(std::string_view digits) {
    if (digits.size() != 4) return std::nullopt;
    return number_of_text<unsigned>(digits, 16);
}

/// An integer of few enough digits to fit in 64 bits.
bool is_short_whole(std::string_view text) {
    constexpr std::size_t max_digits = 18;
    return are_digits(text) && text.size() <= max_digits && (text[0] != '0' || text.size() == 1);
}

/// The contents of a JSON string without escapes of surrogates; nothing for any other text.
std::optional<std::string> simple_string(std::string_view text) {
    if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::nullopt;
    text = text.substr(1, text.size() - 2);
    std::string contents;
    for (;;) {
        const auto special = std::ranges::find_if(text, [](char c) {
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
    JsonCursor cursor(source);
    const char first = cursor.peek();
    begin_ = cursor.at();
    if (first == '[') {
        is_array_ = true;
    } else if (first == '{') {
        read_members(cursor);
        require_end(cursor);
    } else {
        cursor.fail("JSON: a matrix [[...], ...] or a request {...}");
    }
}

JsonDocument::JsonDocument(const Source& source, const JsonMember& member)
    : source_(source), is_array_(source.text[member.begin] == '['), begin_(member.begin) {
    JsonCursor cursor(source, begin_);
    if (!is_array_) read_members(cursor);
}

JsonDocument JsonDocument::as_far_as_it_reads(const Source& source) {
    JsonDocument document(source, Unread{});
    JsonCursor cursor(source);
    try {
        if (cursor.peek() == '{') document.read_members(cursor);
    } catch (const Error&) {
        // The members read so far are in the document.
    }
    return document;
}

const JsonMember* JsonDocument::find(const std::string& key) const {
    return find_row(members_, &JsonMember::key, key);
}

NumberArray JsonDocument::read_array(const ArrayRules& rules, ThreadPool* workers,
                                     std::size_t piece_size) const {
    const std::size_t end = source_.text.find_last_not_of(" \t\r\n") + 1;
    auto regular =
        read_json_rows(source_.text.substr(begin_, end - begin_), rules, workers, piece_size);
    if (regular) return std::move(*regular);
    JsonCursor cursor(source_, begin_);
    cursor.take_value();
    require_end(cursor);
    return read_json_array(source_, begin_, rules);
}

NumberArray JsonDocument::read_array(const JsonMember& member, const ArrayRules& rules,
                                     ThreadPool* workers, std::size_t piece_size) const {
    auto regular =
        read_json_rows(text(member), rules, workers, piece_size, source_.text.size() - member.end);
    if (regular) return std::move(*regular);
    return read_json_array(source_, member.begin, rules);
}

void JsonDocument::for_each_entry(const JsonMember& list,
                                  FunctionRef<bool(const JsonMember&)> take) const {
    JsonMember entry = list;
    JsonCursor cursor(source_, list.begin, list.end);
    cursor.take('[');
    if (cursor.peek() == ']') return;
    bool goes_on;
    do {
        cursor.peek();
        entry.begin = cursor.at();
        cursor.take_value();
        entry.end = cursor.at();
        goes_on = cursor.take(',');
        if (!goes_on && cursor.peek() != ']') cursor.fail("',' or ']'");
    } while (take(entry) && goes_on);
}

bool JsonDocument::is_short_whole(const JsonMember& member) const {
    return io::is_short_whole(text(member));
}

bool JsonDocument::is_plain(const JsonMember& member) const {
    const std::string_view value = text(member);
    return io::is_short_whole(value) ||
           (plain_text(value) &&
            std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; }));
}

nlohmann::json JsonDocument::read_value(const JsonMember& member) const {
    return parse(text(member), member.begin);
}

std::string JsonDocument::copied(const JsonMember& member) const {
    // nlohmann checks the form: it would refuse large numbers and halves of surrogates.
    std::string copy, form(text(member));
    for (JsonCursor cursor(source_, member.begin, member.end); cursor.peek() != '\0';) {
        const std::string_view rest = cursor.rest();
        std::size_t word = 0;
        for (const std::string_view known : {"true", "false", "null"})
            if (rest.starts_with(known)) word = known.size();
        if ((is_letter(rest[0]) && word == 0) || rest.starts_with("-I"))
            cursor.fail("a JSON value");
        const std::size_t at = cursor.at() - member.begin;
        const std::size_t digits = parse_json_number(rest).length;
        const std::size_t end =
            at + (cursor.peek() == '"' ? cursor.take_string().size()
                                       : std::max<std::size_t>({1, word, digits}));
        cursor.skip(member.begin + end - cursor.at());
        copy.append(text(member), at, end - at);
        if (digits != 0) form.replace(at, digits, '1' + std::string(digits - 1, ' '));
        for (std::size_t i = at + 1; i < end; ++i) {
            if (form[i] != '\\') continue;
            const bool is_code = form[i + 1] == 'u' && code_of(form.substr(i + 2, 4));
            is_code ? void(form.replace(i, 6, 6, ' ')) : void(++i);
        }
    }
    if (!nlohmann::json::accept(form.data(), form.data() + form.size())) parse(form, member.begin);
    return copy;
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

void JsonDocument::require_end(JsonCursor& cursor) const {
    if (cursor.peek() == '\0' && cursor.is_at_end()) return;
    cursor.fail("the end of the text",
                cursor.peek() == '{' ? ", or attn batch for several requests" : "");
}

/// "key": value, ... between braces.
void JsonDocument::read_members(JsonCursor& cursor) {
    TextTable later_keys;
    const auto key_of = [&](std::uint32_t i) -> std::string_view { return members_[i].key; };
    const auto is_known = [&](const std::string& key) {
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
    cursor.take('{');
    if (cursor.take('}')) return;
    members_.reserve(8);  // more than most requests have
    do {
        JsonMember member;
        if (cursor.peek() != '"') cursor.fail("a key in double quotes");
        member.key_offset = cursor.at();
        const std::string_view key = cursor.take_string();
        const auto plain_key = plain_text(key);
        member.key = plain_key ? *plain_key : parse(key, member.key_offset).get<std::string>();
        if (members_.size() == max_json_keys)
            cursor.fail(member.key_offset, "more than ", max_json_keys, " keys; expected fewer");
        if (is_known(member.key))
            cursor.fail(member.key_offset, "the key \"", shortened(member.key),
                        "\" appears twice; expected it once");
        if (!cursor.take(':')) cursor.fail("':'");
        const char first = cursor.peek();
        member.begin = cursor.at();
        const std::string_view value = cursor.take_value();
        member.end = cursor.at();
        // Lists and objects may be large and are checked when they are read; other values now.
        const bool is_large = first == '[' || first == '{';
        if (!is_large && !plain_text(value) && !io::is_short_whole(value)) {
            if (member.key == passed_on_key)
                copied(member);
            else
                read_value(member);
        }
        members_.push_back(std::move(member));
    } while (cursor.take(','));
    if (!cursor.take('}')) cursor.fail("',' or '}'");
}

void JsonDocument::check_values(std::string_view value, std::size_t at) const {
    if (has_too_many_values(value))
        JsonCursor(source_).fail(at, "more than ", max_json_values,
                                 " values in a list or object; expected fewer");
}

/// `at`: where the text is in the source.
nlohmann::json JsonDocument::parse(std::string_view text, std::size_t at) const {
    if (auto plain = plain_value(text)) return std::move(*plain);
    check_values(text, at);
    try {
        return parse_own(text);
    } catch (const nlohmann::json::parse_error& error) {
        const std::string quoted = with_quoted_infinities(text);
        if (nlohmann::json::accept(quoted.data(), quoted.data() + quoted.size()))
            return parse_own(quoted);
        // byte counts from 1 and may be one past the end.
        const std::size_t found = at + std::min(text.size(), error.byte == 0 ? 0 : error.byte - 1);
        JsonCursor(source_, found).fail("a JSON value");
    } catch (const nlohmann::json::out_of_range&) {
        JsonCursor(source_).fail(
            at, "a number beyond float64's range; expected at most 1.7976931348623157e308");
    }
}

std::optional<std::vector<std::size_t>> unsigned_list(const nlohmann::json& value) {
    const auto is_integer = [](const auto& number) { return number.is_number_unsigned(); };
    if (!value.is_array() || !std::ranges::all_of(value, is_integer)) return std::nullopt;
    return value.get<std::vector<std::size_t>>();
}

}  // namespace attn::io
