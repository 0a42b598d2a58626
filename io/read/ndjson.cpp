#include "io/read/input_formats.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "io/read/json_document.hpp"

namespace attn::io {
namespace {

constexpr std::string_view space = JsonCursor::blanks;

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(space), text.size());
    return text.substr(begin, text.find_last_not_of(space) + 1 - begin);
}

}  // namespace

bool looks_like_ndjson(std::string_view text) {
    text = trimmed(text);
    if (!text.starts_with('[') && !text.starts_with('{')) return false;
    const std::size_t first_line = text.find('\n');
    if (first_line == text.npos) return false;
    const char next = text[text.find_first_not_of(space, first_line)];
    const Source line{"", text.substr(0, first_line)};
    JsonCursor cursor(line);
    try {
        cursor.take_value();
    } catch (const Error&) {
        return false;  // it goes on below
    }
    return cursor.peek() == '\0' && (next == '[' || next == '{');
}

bool is_one_line_of_list(std::string_view text) {
    text = trimmed(text);
    return text.starts_with('[') && text.find('\n') == std::string_view::npos;
}

void for_each_line(const Source& source, FunctionRef<void(Source line)> take) {
    std::size_t number = 1;
    for (std::string_view rest = source.text; !rest.empty(); ++number) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (line.find_first_not_of(" \t\r") != std::string_view::npos)
            take(source_of_line(source.name, line, number));
    }
}

NumberArray read_ndjson_array(const Source& source, const ArrayRules& rules, ThreadPool* workers,
                              std::size_t piece_size) {
    auto regular =
        read_json_rows(trimmed(source.text), rules, Outermost::lines, workers, piece_size);
    return regular ? std::move(*regular) : read_json_lines(source, rules);
}

}  // namespace attn::io
