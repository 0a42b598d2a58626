#include "io/read/printed_rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "io/read/array_file.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"

namespace attn::io {
namespace {

constexpr std::string_view times_sign = "\u00d7", row_blanks = " \t\r";

std::string_view first_line(std::string_view text) {
    return trimmed(text.substr(0, text.find('\n')));
}

std::string_view last_line(std::string_view text) {
    return text.substr(text.rfind('\n') + 1);  // npos + 1 is 0
}

bool is_of_libtorch(std::string_view text) {
    const std::string_view line = last_line(text);
    return line.starts_with("[ ") && line.ends_with(" ]") &&
           line.find('{', line.find("Type")) != line.npos;
}

/// "2x3x4 Array{Float64, 3}:", "3-element Vector{Float64}:"
bool is_of_julia(std::string_view text) {
    const std::string_view line = first_line(text);
    const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
    const std::string_view rest = line.substr(digits);
    return digits != 0 && line.ends_with(':') &&
           (rest.starts_with(times_sign) || rest.starts_with("-element "));
}

class PrintedRows {
public:
    explicit PrintedRows(const Source& source)
        : source_(source), text_(trimmed(source.text)), is_julia_(is_of_julia(text_)) {}

    std::string as_json() {
        const std::string_view named = is_julia_ ? first_line(text_) : last_line(text_);
        std::string list(is_julia_ ? named.substr(0, named.find(' '))
                                   : named.substr(named.rfind('{') + 1));
        for (std::size_t at; (at = list.find(times_sign)) != list.npos;)
            list.replace(at, times_sign.size(), "x");
        shape_ = sizes_in(list);
        const std::string_view body =
            is_julia_ ? text_.substr(named.size()) : text_.substr(0, text_.size() - named.size());
        for (const std::string_view mark : {"...", "\u2026", "\u22ee", "\u22ef", "\u22f1"})
            if (const std::size_t at = body.find(mark); at != body.npos)
                fail(body.substr(at), "'", mark,
                     "' in place of elements of a printed array; expected all of them, as "
                     "show(IOContext(stdout, :limit => false), \"text/plain\", x) prints them");
        const auto elements = elements_of(shape_);
        if (shape_.empty() || !elements || *elements == 0 || *elements > body.size())
            fail(named, "found ", excerpt(named, 0),
                 "; expected sizes of as many numbers as there are");
        require_memory(static_cast<double>(*elements) * sizeof(std::string), source_.name,
                       "this array");
        texts_.resize(*elements);
        columns_ = shape_.size() == 1 ? 1 : shape_[axis_of_columns()];
        begin_block(0, columns_);
        for (const std::string_view line : lines_of(body)) take_line(trimmed(line));
        if (const auto missing = std::ranges::find(texts_, ""); missing != texts_.end())
            fail(named, "no number for element ",
                 index_text(static_cast<std::size_t>(missing - texts_.begin()), shape_),
                 "; expected all that ", shape_text(shape_), " has");
        return made();
    }

private:
    template <class... Parts>
    [[noreturn]] void fail(std::string_view at, const Parts&... message) const {
        throw Error(ErrorKind::input,
                    source_.location(static_cast<std::size_t>(at.data() - source_.text.data())),
                    message...);
    }

    /// Julia prints matrices of the first two axes, libtorch of the last two.
    std::size_t axis_of_columns() const { return is_julia_ ? 1 : shape_.size() - 1; }

    void begin_block(std::size_t first_column, std::size_t end_column) {
        row_ = 0;
        first_column_ = first_column;
        end_column_ = end_column;
        exponent_ = 0;
    }

    void take_line(std::string_view line) {
        if (line.empty()) return;
        constexpr std::string_view words = "Columns ", to = " to ";
        if (!is_julia_ && line.starts_with(words)) {
            const std::size_t middle = line.find(to);
            const auto first =
                number_of_text<std::size_t>(line.substr(words.size(), middle - words.size()));
            // The last column runs into a number that has no blank before it.
            std::string_view rest = middle == line.npos ? "" : line.substr(middle + to.size());
            const std::size_t digits = std::min(
                rest.ends_with('*') ? start_of_scale(rest) : rest.find_first_not_of("0123456789"),
                rest.size());
            const auto last = number_of_text<std::size_t>(trimmed(rest.substr(0, digits)));
            if (!first || !last || *first == 0 || *first > *last || *last > columns_)
                fail(line, "found ", excerpt(line, 0), "; expected columns of the ", columns_);
            begin_block(*first - 1, *last);
            line = trimmed(rest.substr(digits));
            if (line.empty()) return;
        }
        const char mark = is_julia_ ? '[' : '(';
        if (line[0] == mark) {
            // "(1,2,.,.) =" and "[:, :, 1, 2] ="
            fixed_.clear();
            std::string_view rest = line.substr(1);
            const std::size_t skip =
                is_julia_ ? std::min(rest.find_first_of("0123456789"), rest.size()) : 0;
            for (const std::size_t index : sizes_in(rest.substr(skip))) fixed_.push_back(index - 1);
            return begin_block(0, columns_);
        }
        if (!is_julia_ && line.ends_with('*')) {
            line.remove_prefix(start_of_scale(line));
            const auto scale = number_of_text<double>(trimmed(line.substr(0, line.size() - 1)));
            const double power = scale && *scale > 0 ? std::log10(*scale) : 0.5;
            if (std::abs(power - std::round(power)) > 1e-9)
                fail(line, "found ", excerpt(line, 0), "; expected a power of ten");
            exponent_ = static_cast<int>(std::lround(power));
            return;
        }
        take_row(line);
    }

    /// Of "1e-05 *", "0.001 *" and "1000 *" at the end of a line.
    static std::size_t start_of_scale(std::string_view line) {
        const std::size_t mark = line.find_last_of("e.");
        return mark == line.npos ? std::min(line.rfind('1'), line.size())
                                 : std::max<std::size_t>(mark, 1) - 1;
    }

    void take_row(std::string_view line) {
        std::size_t column = first_column_;
        for (std::string_view rest = line; !rest.empty(); rest = after_blanks(rest), ++column) {
            std::string number;
            const std::size_t length = append_json_number(number, rest);
            const bool ends =
                length == rest.size() ||
                (length < rest.size() && row_blanks.find(rest[length]) != row_blanks.npos);
            if (length == 0 || !ends || column == end_column_)
                fail(rest, "found ", excerpt(rest, 0), "; expected ",
                     column == end_column_
                         ? "the end of a row of " + std::to_string(end_column_ - first_column_)
                         : "a number");
            if (exponent_ != 0 && number.find_first_of("eEIN") == number.npos)
                number += "e" + std::to_string(exponent_);
            text_at(rest, column) = std::move(number);
            rest.remove_prefix(length);
        }
        if (column != end_column_)
            fail(line, column - first_column_, " numbers in a row; expected ",
                 end_column_ - first_column_);
        ++row_;
    }

    /// Of the element in the current row.
    std::string& text_at(std::string_view here, std::size_t column) {
        std::vector<std::size_t> index{row_, column};
        if (shape_.size() == 1) index.pop_back();
        index.insert(is_julia_ ? index.end() : index.begin(), fixed_.begin(), fixed_.end());
        const bool is_inside = std::ranges::equal(index, shape_, std::less<>());
        std::size_t at = 0;
        for (std::size_t axis = 0; is_inside && axis < shape_.size(); ++axis)
            at = at * shape_[axis] + index[axis];
        if (!is_inside || !texts_[at].empty())
            fail(here, "found ", excerpt(here, 0), "; expected each element of ",
                 shape_text(shape_), " once");
        return texts_[at];
    }

    std::string made() const {
        std::vector<std::size_t> rows = shape_;  // of one element each
        rows.push_back(1);
        std::string list;
        for (std::size_t i = 0; i < texts_.size(); ++i)
            list += (i == 0 ? "" : ",") + std::string(axes_that_turn(rows, i, 0), '[') + texts_[i] +
                    std::string(axes_that_turn(rows, i, 1), ']');
        return list;
    }

    const Source& source_;
    std::string_view text_;
    bool is_julia_;
    std::vector<std::size_t> shape_;
    std::vector<std::string> texts_;
    std::size_t columns_ = 0;
    std::vector<std::size_t> fixed_;  ///< the indices of the matrix
    std::size_t row_ = 0, first_column_ = 0, end_column_ = 0;
    int exponent_ = 0;
};

}  // namespace

bool are_printed_rows(std::string_view text) {
    text = trimmed(text);
    return is_of_libtorch(text) || is_of_julia(text);
}

std::string json_of_printed_rows(const Source& printed) {
    return PrintedRows(printed).as_json();
}

std::size_t append_json_number(std::string& json, std::string_view text) {
    const ParsedNumber number = parse_loose_number(text);
    text = text.substr(0, number.length);
    if (number.length == 0) return 0;
    const bool is_word = std::ranges::none_of(text, is_digit);
    if (text.starts_with('-')) json += '-';
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    if (is_word) {
        json += std::isnan(number.value) ? "NaN" : "Infinity";
        return number.length;
    }
    if (text.starts_with('.')) json += '0';
    const std::size_t point = text.find('.');
    const bool is_bare =
        point != std::string_view::npos &&
        (point + 1 == text.size() || text[point + 1] == 'e' || text[point + 1] == 'E');
    json += text.substr(0, is_bare ? point + 1 : text.size());
    if (is_bare) (json += '0') += text.substr(point + 1);
    return number.length;
}

std::vector<std::size_t> sizes_in(std::string_view text) {
    std::vector<std::size_t> sizes;
    text.remove_prefix(std::min(text.find_first_not_of(" [({"), text.size()));
    const std::size_t end = text.find_first_not_of("0123456789, x");
    for (std::string_view rest = text.substr(0, end); !rest.empty() && sizes.size() <= 64;) {
        rest.remove_prefix(std::min(rest.find_first_not_of(", x"), rest.size()));
        const std::string_view digits = rest.substr(0, rest.find_first_of(", x"));
        if (const auto size = number_of_text<std::size_t>(digits)) sizes.push_back(*size);
        rest.remove_prefix(digits.size());
    }
    return sizes;
}

}  // namespace attn::io
