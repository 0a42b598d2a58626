#include "io/read/json_document.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "io/read/input_formats.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

class JsonArrayReader {
public:
    JsonArrayReader(const Source& source, std::size_t begin, const ArrayRules& rules)
        : cursor_(source, begin), rules_(rules) {
        shape_.assign(rules.highest_rank, 0);
    }

    NumberArray read() {
        const std::size_t begin = cursor_.at();
        read_list(0);
        if (rank_ < rules_.lowest_rank)
            cursor_.fail(begin, "an array of rank ", rank_, "; expected rank ", rank_range(rules_),
                         ", as in [[1, 2], [3, 4]]");
        shape_.resize(rank_);
        return {to_array(values_, shape_), boolean_};
    }

private:
    char next_token() {
        const char next = cursor_.peek();
        if (cursor_.is_at_end())
            cursor_.fail(cursor_.at(), "the text ends inside an array; expected ']'");
        return next;
    }

    void read_list(std::size_t depth) {
        const std::size_t opened_at = cursor_.at(), rank_here = depth + 1;
        if (depth == rules_.highest_rank)
            cursor_.fail(opened_at, "an array nested deeper than ", rules_.highest_rank,
                         "; expected rank ", rank_range(rules_));
        cursor_.take('[');
        std::size_t length = 0;
        for (bool goes_on = next_token() != ']'; goes_on; ++length) {
            const bool is_list = next_token() == '[';
            if (!is_list && rank_ == 0) rank_ = rank_here;
            if (is_list && rank_ == rank_here)
                cursor_.fail(cursor_.at(), "a list among numbers; expected a number");
            if (!is_list && rank_ != rank_here) cursor_.fail("a list, as before it");
            is_list ? read_list(rank_here) : read_number();
            goes_on = next_token() == ',';
            if (!goes_on && cursor_.peek() != ']') cursor_.fail("',' or ']'");
            if (goes_on) cursor_.take(',');
        }
        cursor_.take(']');
        if (length == 0) cursor_.fail(opened_at, "an empty list; expected at least one element");
        std::size_t& expected = shape_[depth];
        if (expected == 0) expected = length;
        if (expected != length)
            cursor_.fail(opened_at, length, length == 1 ? " element" : " elements",
                         " in this list; expected ", expected, " as in the first one");
    }

    void take(double value, std::size_t length) {
        values_.push_back(value);
        cursor_.skip(length);
    }

    void read_number() {
        const std::string_view rest = cursor_.rest();
        for (const auto& [word, value] :
             {std::pair(std::string_view("true"), 1.0), {"false", 0.0}}) {
            if (!rules_.boolean || !rest.starts_with(word)) continue;
            if (!values_.empty() && !boolean_)
                cursor_.fail(cursor_.at(), "a boolean among numbers; expected a number");
            boolean_ = true;
            return take(value, word.size());
        }
        if (boolean_)
            cursor_.fail(cursor_.at(), "found ", excerpt(rest, 0),
                         " among booleans; expected true or false");
        if (rules_.null_is_nan && rest.starts_with("null"))
            return take(std::numeric_limits<double>::quiet_NaN(), 4);
        const ParsedNumber number = parse_json_number_or_word(rest);
        const std::string_view digits = rest.substr(0, number.length);
        if (digits.empty() && rest.starts_with('"'))
            cursor_.fail(cursor_.at(), "a string; expected a number");
        const std::string_view after = rest.substr(digits.size());
        const std::string_view ends_number = rank_ == 0 ? " \t\r\n,}" : " \t\r\n,]";
        const bool ends =
            after.empty() || ends_number.find(after.front()) != std::string_view::npos;
        if (digits.empty() || !ends) cursor_.fail("a number");
        const std::string problem = complaint(number.value, digits, rules_);
        if (!problem.empty()) cursor_.fail(cursor_.at(), problem);
        take(stored_number(number.value, digits, rules_), digits.size());
    }

    JsonCursor cursor_;
    const ArrayRules& rules_;
    std::vector<std::size_t> shape_;
    std::vector<double> values_;
    bool boolean_ = false;
    std::size_t rank_ = 0;  // of the first number seen; 0 before
};

constexpr std::string_view space = JsonCursor::blanks;

}  // namespace

NumberArray read_json_array(const Source& source, std::size_t begin, const ArrayRules& rules) {
    return JsonArrayReader(source, begin, rules).read();
}

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

void for_each_line(const Source& source, FunctionRef<void(Source line)> take) {
    std::size_t number = 1;
    for (std::string_view rest = source.text; !rest.empty(); ++number) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
        if (line.find_first_not_of(" \t\r") != std::string_view::npos)
            take(source_of_line(source.name, line, number));
    }
}

}  // namespace attn::io
