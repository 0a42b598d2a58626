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

}  // namespace

std::optional<EmbeddingLines> read_embedding_lines(const Source& source, std::string key) {
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
        return {};
    if (std::ranges::none_of(list_keys, is_list) && !is_list(key)) return {};
    if (key.empty() ? lists.size() > 1 : !is_list(key))
        throw Error(
            ErrorKind::input, source.name, "its lines hold the lists ",
            comma_list(lists, [](const std::string& list) { return one_line(shortened(list)); }),
            "; expected one of them, named as in ", source.name, ":", one_line(lists.front()));
    if (key.empty()) key = lists.front();
    std::string text_key;
    for (const std::string_view name : text_keys)
        if (const JsonMember* member = first.find(std::string(name));
            text_key.empty() && member != nullptr && first.text(*member).starts_with('"'))
            text_key = name;

    // Each list stays in its line and column, behind a line of its own for the key.
    std::string made = "{", texts;
    append_json_string(made, key);
    made += ":[\n";
    std::size_t lines = source.first_line;
    bool is_first = true;
    for_each_line(source, [&](const Source& line) {
        const JsonDocument document(line);
        const auto member = [&](const std::string& name, char start_of_value) {
            const JsonMember* found = document.find(name);
            if (found == nullptr || document.text(*found)[0] != start_of_value)
                throw Error(ErrorKind::input, line_location(line.name, line.first_line), "has no ",
                            start_of_value == '[' ? "list " : "text ", quoted_name(name),
                            "; expected one, as the first line has");
            return *found;
        };
        const JsonMember list = member(key, '[');
        made.append(line.first_line - lines, '\n');
        lines = line.first_line;
        made += std::string(list.begin - 1, ' ') + (is_first ? ' ' : ',');
        made += document.text(list);
        if (!text_key.empty())
            (texts += is_first ? "" : ",") += document.text(member(text_key, '"'));
        is_first = false;
    });
    made += ']';
    if (!text_key.empty()) made += ",\"tokens\":[" + texts + ']';
    made += '}';
    const auto text = std::make_shared<const std::string>(std::move(made));
    return EmbeddingLines{
        std::make_shared<const Source>(Source{source.name, *text, text, source.first_line - 1}),
        std::move(key)};
}

}  // namespace attn::io
