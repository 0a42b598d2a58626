// Shapes as messages show them; see tensor.hpp.
#include "core/tensor.hpp"

namespace attn {

std::string shape_text(const std::vector<std::size_t>& shape) {
    std::string text = "(";
    for (std::size_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
    return text + ")";
}

}  // namespace attn
