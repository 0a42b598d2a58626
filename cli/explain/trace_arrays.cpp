#include "cli/explain/explanation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "io/text/number_text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {

double element(const NamedArray& array, std::size_t index) {
    return std::visit([&](const auto& values) { return static_cast<double>(values.data()[index]); },
                      array.values);
}

const NamedArray& TraceArrays::get(std::string_view name) const {
    const NamedArray* array = find(name);
    if (array == nullptr) throw std::logic_error("no array " + std::string(name));
    return *array;
}

std::string TraceArrays::shape(std::string_view name) const {
    return "(" + io::axes_text(get(name)) + ")";
}

Row TraceArrays::row(std::string_view name, std::size_t head, std::size_t index) const {
    const NamedArray& array = get(name);
    const auto place = [&](std::string_view axis, std::size_t size) {
        if (axis == "batch") return batch_;
        // Keys and values have fewer heads if groups share them.
        if (axis == "heads") return head * size / heads_;
        if (axis == "q_len") return std::size_t{0};
        return axis == "tokens" ? token_ : index;
    };
    const auto shape = io::shape_of(array);
    const std::size_t rank = shape.size();
    const bool is_number = array.axes[rank - 1] == "q_len" || name == "token_ids";
    const std::size_t length = is_number ? 1 : shape[rank - 1];
    std::size_t at = 0;
    for (std::size_t i = 0; i < rank - (is_number ? 0 : 1); ++i)
        at = at * shape[i] + place(array.axes[i], shape[i]);
    Row row(length);
    for (std::size_t i = 0; i < length; ++i) row[i] = element(array, at * length + i);
    return row;
}

Row TraceArrays::weights_of(std::string_view name, std::size_t head, std::size_t out) const {
    const NamedArray& array = get(name);
    const auto shape = io::shape_of(array);
    const std::size_t rank = shape.size(), rows = shape[rank - 2], columns = shape[rank - 1];
    const std::size_t matrix = rank == 3 ? head * rows * columns : 0;
    const bool is_row = array.axes.back() == "d_in";
    Row weights(is_row ? columns : rows);
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = element(array, matrix + (is_row ? out * columns + i : i * columns + out));
    return weights;
}

std::string NumberFormat::number(double value) const {
    return io::fixed_text(value, decimals_);
}

std::string NumberFormat::factor(double value) const {
    const std::string text = number(value);
    return text.starts_with('-') ? "(" + text + ")" : text;
}

std::string NumberFormat::row(const Row& values, std::size_t most) const {
    const std::size_t count = values.size(), back = count > most ? most / 4 : 0,
                      front = std::min(count, (most + 1) / 2);
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) {
        if (i != 0) text += ", ";
        if (count > most && i == front) {
            text += back == 0 ? "..." : "..., ";
            i = count - back;
            if (back == 0) break;
        }
        text += number(values[i]);
    }
    text += "]";
    return count > most ? text + " of " + std::to_string(count) : text;
}

template <class Text>
std::string NumberFormat::sum(const Row& values, const ShownTerms& shown,
                              std::optional<double> last, double result, Text text_of) const {
    std::string text;
    const auto add = [&](const std::string& term) { (text += text.empty() ? "" : " + ") += term; };
    Row others = values;  // summed separately: large terms would hide them
    for (std::size_t i : shown.places) {
        add(text_of(i));
        others[i] = 0;
    }
    if (shown.places.empty() && shown.others == 0) add("nothing");
    if (shown.others != 0) {
        std::string name = shown.others == 1 ? "" : std::to_string(shown.others) + " ";
        (name += shown.name) += shown.others == 1 ? ")" : "s)";
        add(factor(std::accumulate(others.begin(), others.end(), 0.0)) + " (the " + name);
    }
    if (last) add(factor(*last));
    return text + " = " + number(result);
}

std::string NumberFormat::products(const Row& a, const Row& b, double result,
                                   std::optional<double> bias,
                                   const std::optional<ShownTerms>& shown) const {
    Row products(a.size());
    std::transform(a.begin(), a.end(), b.begin(), products.begin(), std::multiplies<>());
    const std::size_t count = std::min(most_, products.size());
    return sum(products,
               shown ? *shown
                     : ShownTerms{largest_of(products, count), products.size() - count,
                                  "smallest product"},
               bias, result, [&](std::size_t i) { return factor(a[i]) + "*" + factor(b[i]); });
}

std::string NumberFormat::total(const Row& values, const ShownTerms& shown,
                                std::optional<double> last, double result) const {
    return sum(values, shown, last, result, [&](std::size_t i) { return factor(values[i]); });
}

std::vector<std::size_t> largest_of(const Row& values, std::size_t most) {
    std::vector<std::size_t> all(values.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (all.size() <= most) return all;
    const auto size_of = [&](std::size_t i) {  // NaN comes first
        return std::isnan(values[i]) ? std::numeric_limits<double>::infinity()
                                     : std::abs(values[i]);
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](std::size_t a, std::size_t b) { return size_of(a) > size_of(b); });
    all.resize(most);
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace attn::cli
