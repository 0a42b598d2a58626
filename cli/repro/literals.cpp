// Numbers and arrays as a language writes them.
#include <algorithm>
#include <cmath>

#include "cli/repro/program.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {
namespace {

constexpr std::size_t max_row_width = 72;
constexpr std::size_t integer_digits = 18;  ///< every integer of this many digits fits in 64 bits

}  // namespace

std::string literal_of(double value, NumberType dtype, const LanguageRow& language) {
    if (std::isinf(value)) return (value < 0 ? "-" : "") + std::string(language.infinity);
    std::string text = arithmetic_of(dtype) == NumberType::float32
                           ? io::number_text(static_cast<float>(value))
                           : io::number_text(value);
    // In C, longer integers may fit no integer type, or only an unsigned one, so that -x wraps.
    if (text.size() > integer_digits && text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
}

void add_rows(std::string& text, const std::vector<std::size_t>& shape, std::size_t axis,
              const double*& next, NumberType dtype, const LanguageRow& language) {
    text += language.open;
    const std::size_t depth = axis + 1;
    std::size_t column = depth;
    for (std::size_t i = 0; i < shape[axis]; ++i) {
        std::string number;
        if (depth == shape.size()) number = literal_of(*next++, dtype, language);
        const bool breaks = number.empty() || column + number.size() > max_row_width;
        if (i != 0) text += breaks ? ",\n" : ", ";
        if (i != 0 && breaks) text.append(column = depth, ' ');
        column += number.size() + 2;
        text += number;
        if (number.empty()) add_rows(text, shape, depth, next, dtype, language);
    }
    text += language.close;
}

std::string array_text(const std::string& name, const Array<double>& array, NumberType dtype,
                       const LanguageRow& language) {
    const bool in_torch = language.name == "torch", in_c = language.name == "c";
    const bool is_real =
        !std::all_of(array.begin(), array.end(), [](double x) { return std::trunc(x) == x; });
    std::string axes;
    for (const std::size_t size : array.shape()) axes += concat('[', size, ']');
    std::string text =
        in_c ? concat("static const ", is_real ? "real" : "double", " of_", name, axes, " =\n")
             : concat("of_", name, in_torch ? " = torch.tensor(" : " = np.array(");
    const double* next = array.data();
    add_rows(text, array.shape(), 0, next, NumberType::float64, language);
    if (in_c) return text + ';';
    if (is_real) text += concat(", dtype=", in_torch ? "torch." : "np.", row_of(dtype).name);
    return text + ')';
}

}  // namespace attn::cli
