#include "core/base/tensor.hpp"

namespace attn {

std::string shape_text(const std::vector<std::size_t>& shape) {
    std::string text = "(";
    for (std::size_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + ")";
}

std::string index_text(std::size_t element, const std::vector<std::size_t>& shape) {
    std::string text = "]";
    for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
        text = (axis == 0 ? "[" : ", ") + std::to_string(element % shape[axis]) + text;
    return text;
}

std::size_t axes_that_turn(const std::vector<std::size_t>& shape, std::size_t row,
                           std::size_t next) {
    std::size_t axes = 0;
    for (std::size_t axis = shape.size() - 1; axis-- > 0 && (row + next) % shape[axis] == 0; ++axes)
        row = (row + next) / shape[axis] - next;
    return axes;
}

}  // namespace attn
