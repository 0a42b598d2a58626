// Rotary position embedding; see rope.hpp.
#include "core/rope.hpp"

#include <cmath>
#include <vector>

namespace attn {

template <class T>
void rotate(Tensor4<T>& x, Rope rope, double base, std::size_t dims, std::size_t first_position) {
    const std::size_t pairs = dims / 2, rows = x.shape(2), width = x.shape(3);
    std::vector<double> frequency(pairs), cosine(pairs), sine(pairs);
    for (std::size_t i = 0; i < pairs; ++i)
        frequency[i] = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
    for (std::size_t row = 0; row < rows; ++row) {
        const auto position = static_cast<double>(first_position + row);
        for (std::size_t i = 0; i < pairs; ++i) {
            cosine[i] = std::cos(position * frequency[i]);
            sine[i] = std::sin(position * frequency[i]);
        }
        for (std::size_t matrix = 0; matrix < x.shape(0) * x.shape(1); ++matrix) {
            T* values = x.data() + (matrix * rows + row) * width;
            for (std::size_t i = 0; i < pairs; ++i) {
                T& first = values[rope == Rope::half ? i : 2 * i];
                T& second = values[rope == Rope::half ? i + pairs : 2 * i + 1];
                const double a = first, b = second;
                first = static_cast<T>(cosine[i] * a - sine[i] * b);
                second = static_cast<T>(sine[i] * a + cosine[i] * b);
            }
        }
    }
}

template void rotate(Tensor4<float>&, Rope, double, std::size_t, std::size_t);
template void rotate(Tensor4<double>&, Rope, double, std::size_t, std::size_t);

}  // namespace attn
