// The head counts that would divide a width; see nearest_divisors.hpp.
#include "core/base/nearest_divisors.hpp"

#include <algorithm>

namespace attn {

std::string nearest_divisors(std::uint64_t width, std::uint64_t heads) {
    std::uint64_t below = 1, above = width;
    for (std::uint64_t i = 1; i * i <= width; ++i) {
        if (width % i != 0) continue;
        for (std::uint64_t divisor : {i, width / i}) {
            if (divisor < heads) below = std::max(below, divisor);
            if (divisor > heads) above = std::min(above, divisor);
        }
    }
    if (heads > width) return "the nearest is " + std::to_string(width);
    return "the nearest are " + std::to_string(below) + " and " + std::to_string(above);
}

}  // namespace attn
