#include "cli/repro/literal.hpp"

#include <cmath>
#include <cstdlib>
#include <optional>

#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t max_columns = 100;
constexpr std::size_t integer_digits = 18;  ///< every integer of this many digits fits in 64 bits

/// Writes one array; `next_` is the next of its numbers.
class ArrayText {
public:
    ArrayText(const std::vector<double>& values, Dtype dtype, const LiteralStyle& style)
        : values_(values), dtype_(dtype), style_(style) {}

    std::string of(const std::vector<std::size_t>& shape, std::size_t indent) {
        append(shape, 0, indent);
        return std::move(text_);
    }

private:
    void append(const std::vector<std::size_t>& shape, std::size_t axis, std::size_t indent) {
        text_ += style_.open;
        const std::size_t inner = indent + style_.open.size();
        if (axis + 1 == shape.size()) {
            append_row(shape[axis], inner);
        } else {
            for (std::size_t i = 0; i < shape[axis]; ++i) {
                if (i != 0) (text_ += ",\n").append(inner, ' ');
                append(shape, axis + 1, inner);
            }
        }
        text_ += style_.close;
    }

    void append_row(std::size_t count, std::size_t indent) {
        std::size_t column = indent;
        for (std::size_t i = 0; i < count; ++i) {
            const std::string number = number_literal(values_[next_++], dtype_, style_.infinity);
            if (i != 0 && column + number.size() + 3 > max_columns) {
                (text_ += ",\n").append(indent, ' ');
                column = indent;
            } else if (i != 0) {
                text_ += ", ";
                column += 2;
            }
            text_ += number;
            column += number.size();
        }
    }

    const std::vector<double>& values_;
    Dtype dtype_;
    const LiteralStyle& style_;
    std::string text_;
    std::size_t next_ = 0;
};

}  // namespace

std::string number_literal(double value, Dtype dtype, std::string_view infinity) {
    if (std::isinf(value)) return (value < 0 ? "-" : "") + std::string(infinity);
    std::string text;
    if (dtype == Dtype::float32)
        io::append_number(text, static_cast<float>(value), std::nullopt);
    else
        io::append_number(text, value, std::nullopt);
    // In C, longer integers may fit no integer type, or only an unsigned one, so that -x wraps.
    if (text.size() > integer_digits && text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

double rounded_tolerance(double value, Dtype dtype) {
    // Half a unit of the third digit is at most 0.5 %. Unlike stod, strtod takes subnormal numbers.
    return row_of(dtype).round(std::strtod(io::scientific_text(value * 1.005, 2).c_str(), nullptr));
}

std::string array_literal(const std::vector<std::size_t>& shape, const std::vector<double>& values,
                          Dtype dtype, std::size_t indent, const LiteralStyle& style) {
    return ArrayText(values, dtype, style).of(shape, indent);
}

}  // namespace attn::cli
