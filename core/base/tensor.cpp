#include "core/base/tensor.hpp"

namespace attn {

namespace {

std::string listed(const std::vector<std::size_t>& numbers) {
    std::string text;
    for (std::size_t one : numbers) text += (text.empty() ? "" : ", ") + std::to_string(one);
    return text;
}

}  // namespace

std::string shape_text(const std::vector<std::size_t>& shape) {
    return "(" + listed(shape) + ")";
}

std::vector<std::size_t> index_of(std::size_t element, const std::vector<std::size_t>& shape) {
    std::vector<std::size_t> index(shape.size());
    for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
        index[axis] = element % shape[axis];
    return index;
}

std::string index_text(const std::vector<std::size_t>& index) {
    return "[" + listed(index) + "]";
}

std::size_t axes_that_turn(const std::vector<std::size_t>& shape, std::size_t row,
                           std::size_t next) {
    std::size_t axes = 0;
    for (std::size_t axis = shape.size() - 1; axis-- > 0 && (row + next) % shape[axis] == 0; ++axes)
        row = (row + next) / shape[axis] - next;
    return axes;
}

}  // namespace attn
