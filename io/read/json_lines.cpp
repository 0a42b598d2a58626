// Lines of JSON that are the rows of one array, as one JSON text: "[1, 2]" and "[3, 4]", or objects
// with a list of numbers and perhaps a text, as {"text": "a", "embedding": [1, 2]}.
#include <algorithm>
#include <utility>

#include "core/operator/arrays.hpp"
#include "io/read/input_formats.hpp"
#include "io/text/json_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr std::array<std::string_view, 3> list_keys{"embedding", "vector", "values"};
constexpr std::array<std::string_view, 5> text_keys{"text", "token", "word", "label", "name"};

/// Whether a member is a list of numbers, by its start.
bool is_list_of_numbers(const JsonDocument& line, const JsonMember& member) {
    if (!line.holds_array(member)) return false;
    const std::string_view rest = after_blanks(line.text(member).substr(1));
    return rest.find_first_of("[{\"]") != 0;
}

/// The keys of an object's list, if it is not given, and of its text, if it has one; false for any
/// other lines.
bool find_keys(const Source& source, std::string& key, std::string& text_key) {
    const std::string_view start = after_blanks(source.text);
    const Source first_line{source.name, start.substr(0, start.find('\n'))};
    const JsonDocument first = JsonDocument::as_far_as_it_reads(first_line);
    std::vector<std::string> lists;
    for (const JsonMember& member : first.members())
        if (is_list_of_numbers(first, member)) lists.push_back(member.key);
    const auto is_list = [&](std::string_view name) {
        return std::ranges::count(lists, name) != 0;
    };
    // Lines of attn batch are results, each with its own arrays.
    if (first.find("schema") != nullptr || first.find("mode") != nullptr ||
        (find_array(key) && std::ranges::count(list_keys, key) == 0))
        return false;
    const bool is_request = first.find("inputs") != nullptr || first.find("query") != nullptr,
               is_known = std::ranges::any_of(list_keys, is_list);
    const bool may_be_rows =
        start.find('\n') != start.npos && !lists.empty() && !is_request && key.empty() &&
        std::ranges::none_of(lists, [](const auto& list) { return find_array(list).has_value(); });
    if (!is_known && !is_list(key) && !may_be_rows) return false;
    if (key.empty() ? lists.size() > 1 || !is_known : !is_list(key))
        throw Error(
            ErrorKind::input, source.name, "its lines hold the lists ",
            comma_list(lists, [](const std::string& list) { return one_line(shortened(list)); }),
            "; expected one of them, named as in ", source.name, ":", one_line(lists.front()));
    if (key.empty()) key = lists.front();
    for (const std::string_view name : text_keys)
        if (const JsonMember* member = first.find(std::string(name));
            text_key.empty() && member != nullptr && first.text(*member).starts_with('"'))
            text_key = name;
    return true;
}

/// The text of a member that begins with `start`.
std::string_view value_of(const JsonDocument& document, const Source& line, const std::string& key,
                          char start) {
    const JsonMember* found = document.find(key);
    if (found == nullptr || document.text(*found)[0] != start)
        throw Error(ErrorKind::input, line_location(line.name, line.first_line), "has no ",
                    start == '[' ? "list " : "text ", quoted_name(key),
                    "; expected one, as the first line has");
    return document.text(*found);
}

std::string_view list_of(const Source& source, std::string_view line) {
    const std::string_view row = trimmed(line);  // most are of numbers alone
    if (row.front() == '[' && row.back() == ']' &&
        count_marks(row.data(), row.data() + row.size(), "[]") == 2)
        return row;
    const auto begin = static_cast<std::size_t>(line.data() - source.text.data());
    JsonCursor cursor(source, begin, begin + line.size());
    if (cursor.peek() != '[')
        cursor.fail("a list on each line",
                    cursor.peek() == '{' ? ", or attn batch for requests" : "");
    const std::string_view list = cursor.take_value();
    if (cursor.peek() != '\0') cursor.fail("the end of the line");
    return list;
}

/// A document with its text.
struct OwnedDocument {
    OwnedDocument(std::string made, const Source& lines)
        : text(std::move(made)), source{lines.name, text, {}, lines.first_line - 1},
          document(source) {}

    std::string text;
    Source source;
    JsonDocument document;
};

}  // namespace

std::shared_ptr<const JsonDocument> document_of_lines(const Source& source, std::string& key) {
    const std::string_view text = trimmed(source.text);
    const bool are_lists = text.starts_with('[');
    std::string text_key;
    if (are_lists ? text.find('\n') != text.npos && !looks_like_ndjson(text)
                  : !find_keys(source, key, text_key))
        return {};
    // Each list stays in its line and column, behind a line of its own for the key.
    std::string made = are_lists ? "[" : "{" + value_text(key) + ":[", texts;
    made.reserve(source.text.size() / 3 * 4 + 4);  // a comma for each "[1]" at most
    std::size_t number = source.first_line, last = number - 1;
    for (std::string_view rest = source.text; !rest.empty(); ++number) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (trimmed(line).empty()) continue;
        const bool is_first = last < source.first_line;
        std::string_view list;
        if (are_lists) {
            list = list_of(source, line);
        } else {
            const Source one = source_of_line(source.name, line, number);
            const JsonDocument object(one);
            list = value_of(object, one, key, '[');
            if (!text_key.empty())
                (texts += is_first ? "" : ",") += value_of(object, one, text_key, '"');
        }
        const auto column = static_cast<std::size_t>(list.data() - line.data());
        if (!is_first && column == 0) made += ',';
        made.append(number - last, '\n').append(column, ' ');
        if (!is_first && column != 0) made.back() = ',';
        made += list;
        last = number;
    }
    made += ']';
    if (!text_key.empty()) made += ",\"tokens\":[" + texts + ']';
    if (!are_lists) made += '}';
    const auto document = std::make_shared<const OwnedDocument>(std::move(made), source);
    return {document, &document->document};
}

}  // namespace attn::io
