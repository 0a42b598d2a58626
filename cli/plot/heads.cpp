#include "cli/plot/heads.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/picked.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// The index of the heads axis, or the rank if there is none.
std::size_t axis_of_heads(const NamedArray& array) {
    return static_cast<std::size_t>(std::find(array.axes.begin(), array.axes.end(), "heads") -
                                    array.axes.begin());
}

/// 0 if there is no such axis.
std::size_t number_of_heads(const NamedArray& array) {
    const std::vector<std::size_t> shape = io::shape_of(array);
    const std::size_t axis = axis_of_heads(array);
    return axis < shape.size() ? shape[axis] : 0;
}

}  // namespace

std::vector<const NamedArray*> keep_heads(io::Report& report,
                                          const std::vector<const NamedArray*>& drawn,
                                          const std::vector<std::size_t>& heads) {
    const auto widest = *std::max_element(
        drawn.begin(), drawn.end(),
        [](const auto* a, const auto* b) { return number_of_heads(*a) < number_of_heads(*b); });
    const std::size_t count = number_of_heads(*widest);
    for (std::size_t head : heads)
        if (head >= count)
            throw Error(
                ErrorKind::usage, "--head " + std::to_string(head),
                widest->name + (count == 0
                                    ? " has no heads; expected an array that has some"
                                    : " has " + std::to_string(count) + " heads; expected 0 to " +
                                          std::to_string(count - 1)));
    std::vector<const NamedArray*> left;
    for (const NamedArray* array : drawn)
        if (const std::size_t own = number_of_heads(*array); own == 0 || own == count)
            left.push_back(array);
    for (NamedArray& array : report.arrays)
        if (number_of_heads(array) == count)
            std::visit([&](auto& values) { values = picked(values, axis_of_heads(array), heads); },
                       array.values);
    report.head_labels.reserve(heads.size());
    for (std::size_t head : heads) report.head_labels.push_back("head " + std::to_string(head));
    return left;
}

}  // namespace attn::cli
