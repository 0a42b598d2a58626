#include "cli/explain/trace_arrays.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "io/text/number_text.hpp"

namespace attn::cli {

const NamedArray* TraceArrays::find(std::string_view name) const {
    return array_named(name, arrays_);
}

const NamedArray& TraceArrays::get(std::string_view name) const {
    const NamedArray* array = find(name);
    if (array == nullptr) throw std::logic_error("no array " + std::string(name));
    return *array;
}

std::string TraceArrays::shape(std::string_view name) const {
    const NamedArray& array = get(name);
    return std::visit(
        [&](const auto& values) {
            std::string text;
            for (std::size_t i = 0; i < array.axes.size(); ++i)
                text += (i == 0 ? "" : ", ") + std::string(array.axes[i]) + " " +
                        std::to_string(values.shape(i));
            return "(" + text + ")";
        },
        array.values);
}

std::vector<std::size_t> TraceArrays::sizes(std::string_view name) const {
    return std::visit(
        [](const auto& values) {
            return std::vector<std::size_t>(values.shape().begin(), values.shape().end());
        },
        get(name).values);
}

std::vector<Row> TraceArrays::rows(std::string_view name) const {
    return std::visit(
        [](const auto& values) {
            const std::size_t length = values.shape(values.dimension() - 1);
            std::vector<Row> all;
            all.reserve(values.size() / length);
            for (auto at = values.data(); at != values.data() + values.size(); at += length)
                all.emplace_back(at, at + length);
            return all;
        },
        get(name).values);
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
    return std::visit(
        [&](const auto& values) {
            const std::size_t rank = values.dimension();
            const bool is_number = array.axes[rank - 1] == "q_len" || name == "token_ids";
            const std::size_t length = is_number ? 1 : values.shape(rank - 1);
            std::size_t at = 0;
            for (std::size_t i = 0; i < rank - (is_number ? 0 : 1); ++i)
                at = at * values.shape(i) + place(array.axes[i], values.shape(i));
            const auto first = values.data() + at * length;
            return Row(first, first + length);
        },
        array.values);
}

Row TraceArrays::weights_of(std::string_view name, std::size_t head, std::size_t out) const {
    const NamedArray& array = get(name);
    return std::visit(
        [&](const auto& values) {
            const std::size_t rank = values.dimension();
            const std::size_t rows = values.shape(rank - 2), columns = values.shape(rank - 1);
            const auto matrix = values.data() + (rank == 3 ? head * rows * columns : 0);
            Row column;
            if (array.axes.back() == "d_in") {
                column.assign(matrix + out * columns, matrix + (out + 1) * columns);
            } else {
                for (std::size_t i = 0; i < rows; ++i)
                    column.push_back(static_cast<double>(matrix[i * columns + out]));
            }
            return column;
        },
        array.values);
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
std::string NumberFormat::terms(const Row& values, const ShownTerms& shown, Text text_of) const {
    if (values.empty()) return "nothing";
    std::string text;
    Row others = values;  // summed separately: large terms would hide them
    for (std::size_t i : shown.places) {
        text += (text.empty() ? "" : " + ") + text_of(i);
        others[i] = 0;
    }
    if (shown.others == 0) return text;
    const std::string name = shown.others == 1
                                 ? std::string(shown.name)
                                 : std::to_string(shown.others) + " " + shown.name + "s";
    return text + (text.empty() ? "" : " + ") +
           factor(std::accumulate(others.begin(), others.end(), 0.0)) + " (the " + name + ")";
}

std::string NumberFormat::sum(const SumOfProducts& sum, double result,
                              const std::optional<ShownTerms>& shown) const {
    Row products;
    products.reserve(sum.factors.size());
    for (const auto& [a, b] : sum.factors) products.push_back(a * b);
    const auto largest = [&] {
        const std::size_t count = std::min(most_, products.size());
        return ShownTerms{largest_of(products, count), products.size() - count, "smallest product"};
    };
    std::string text = terms(products, shown ? *shown : largest(), [&](std::size_t i) {
        return factor(sum.factors[i].first) + "*" + factor(sum.factors[i].second);
    });
    if (sum.bias) text += " + " + factor(*sum.bias);
    return text + " = " + number(result);
}

std::string NumberFormat::total(const Row& values, const ShownTerms& shown,
                                std::optional<double> last, double result) const {
    std::string text = terms(values, shown, [&](std::size_t i) { return factor(values[i]); });
    if (last) text += " + " + factor(*last);
    return text + " = " + number(result);
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
