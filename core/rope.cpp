// Rotary position embedding; see rope.hpp.
#include "core/rope.hpp"

#include <cmath>

namespace attn {

template <class T>
void rotate(Tensor4<T>& x, Rope rope, double base, std::size_t dims, std::size_t first_position) {
    const std::size_t pairs = dims / 2, rows = x.shape(2), width = x.shape(3);
    for (std::size_t row = 0; row < x.shape(0) * x.shape(1) * rows; ++row) {
        const auto position = static_cast<double>(first_position + row % rows);
        T* values = x.data() + row * width;
        for (std::size_t i = 0; i < pairs; ++i) {
            const double angle = position * std::pow(base, -2.0 * static_cast<double>(i) /
                                                               static_cast<double>(dims));
            T& first = values[rope == Rope::half ? i : 2 * i];
            T& second = values[rope == Rope::half ? i + pairs : 2 * i + 1];
            const double a = first, b = second;
            first = static_cast<T>(std::cos(angle) * a - std::sin(angle) * b);
            second = static_cast<T>(std::sin(angle) * a + std::cos(angle) * b);
        }
    }
}

template void rotate(Tensor4<float>&, Rope, double, std::size_t, std::size_t);
template void rotate(Tensor4<double>&, Rope, double, std::size_t, std::size_t);

}  // namespace attn
