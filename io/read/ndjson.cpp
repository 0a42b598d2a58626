#include "io/read/ndjson.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/read/json_array.hpp"
#include "io/read/json_rows.hpp"

namespace attn::io {
namespace {

constexpr std::string_view space = " \t\r\n";

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of(space), text.size());
    return text.substr(begin, text.find_last_not_of(space) + 1 - begin);
}

/// The end of the list or object at the start, on its line; npos if it does not end there.
std::size_t end_of_first(std::string_view line) {
    std::size_t depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quoted && c == '\\')
            ++i;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '[' || c == '{'))
            ++depth;
        else if (!quoted && (c == ']' || c == '}') && --depth == 0)
            return i + 1;
    }
    return std::string_view::npos;
}

/// Line by line, for the value or the exact error.
class NdjsonReader {
public:
    NdjsonReader(const Source& source, const ArrayRules& rules) : source_(source), rules_(rules) {
        rules_.lowest_rank = std::max<std::size_t>(rules.lowest_rank, 2) - 1;
        rules_.highest_rank = rules.highest_rank - 1;
    }

    NumberArray read() {
        const std::string_view text = source_.text;
        std::size_t begin = text.find_first_not_of(space);
        while (begin != std::string_view::npos) {
            const std::size_t end = std::min(text.find('\n', begin), text.size());
            read_line(begin, end);
            begin = text.find_first_not_of(space, end);
        }
        shape_.insert(shape_.begin(), lines_);
        return {to_array(values_, shape_), boolean_};
    }

private:
    void read_line(std::size_t begin, std::size_t end) {
        if (source_.text[begin] != '[')
            fail(begin, "found " + excerpt(source_.text, begin) + "; expected a list on each line" +
                            (source_.text[begin] == '{' ? ", or attn batch for requests" : ""));
        if (rules_.highest_rank == 0)
            fail(begin, "one of several lines; expected one list, of rank 1");
        JsonArrayReader reader(source_, begin, rules_, end);
        const NumberArray line = reader.read();
        const std::size_t after = source_.text.find_first_not_of(space, reader.end());
        if (after < end)
            fail_in_json(source_, after,
                         "found " + excerpt(source_.text, after) + "; expected the end of the line",
                         end);
        if (lines_ == 0) {
            shape_ = line.shape();
            boolean_ = line.boolean;
        }
        if (line.shape() != shape_)
            fail(begin, "a list of shape " + shape_text(line.shape()) + "; expected " +
                            shape_text(shape_) + " as on the first line");
        if (line.boolean != boolean_)
            fail(begin, boolean_ ? "numbers; expected true and false as on the first line"
                                 : "true and false; expected numbers as on the first line");
        values_.insert(values_.end(), line.values.begin(), line.values.end());
        ++lines_;
    }

    [[noreturn]] void fail(std::size_t offset, const std::string& message) const {
        throw Error(ErrorKind::input, source_.place(offset), message);
    }

    const Source& source_;
    ArrayRules rules_;
    std::size_t lines_ = 0;
    std::vector<std::size_t> shape_;
    std::vector<double> values_;
    bool boolean_ = false;
};

}  // namespace

bool looks_like_ndjson(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
    if (!text.starts_with('[') && !text.starts_with('{')) return false;
    const std::size_t first_line = text.find('\n');
    if (text.find_first_not_of(space, first_line) == std::string_view::npos) return false;
    const std::string_view line = text.substr(0, first_line);
    const std::size_t end = end_of_first(line);
    if (end == std::string_view::npos || line.find_first_not_of(space, end) < line.size())
        return false;
    const char next = text[text.find_first_not_of(space, first_line)];
    return next == '[' || next == '{';
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
    if (regular) return std::move(*regular);
    return NdjsonReader(source, rules).read();
}

}  // namespace attn::io
