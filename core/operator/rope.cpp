#include "core/operator/rope.hpp"

#include <cmath>
#include <numbers>

namespace attn {

double rope_frequency(std::size_t i, double base, std::size_t dims,
                      const std::vector<double>& scaling) {
    const double plain = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
    if (scaling.empty()) return plain;
    const double slow = plain / scaling[0];
    if (scaling.size() == 1) return slow;
    const double low = scaling[1], high = scaling[2];
    const double turns = scaling[3] * plain / (2 * std::numbers::pi);
    if (turns < low) return slow;
    if (turns > high) return plain;
    const double fast_part = (turns - low) / (high - low);
    return (1 - fast_part) * slow + fast_part * plain;
}

std::vector<double> rope_frequencies(double base, std::size_t dims,
                                     const std::vector<double>& scaling) {
    std::vector<double> all((dims + 1) / 2);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = rope_frequency(i, base, dims, scaling);
    return all;
}

template <class T>
void rotate(Tensor4<T>& x, Rope layout, const std::vector<double>& frequencies,
            std::size_t first_position) {
    const std::size_t pairs = frequencies.size(), rows = x.shape(2), width = x.shape(3);
    std::vector<double> cosine(pairs), sine(pairs);
    for (std::size_t row = 0; row < rows; ++row) {
        const auto position = static_cast<double>(first_position + row);
        for (std::size_t i = 0; i < pairs; ++i) {
            cosine[i] = std::cos(position * frequencies[i]);
            sine[i] = std::sin(position * frequencies[i]);
        }
        for (std::size_t matrix = 0; matrix < x.shape(0) * x.shape(1); ++matrix)
            rotate_row<T>(x.data() + (matrix * rows + row) * width, layout, cosine, sine);
    }
}

template void rotate(Tensor4<float>&, Rope, const std::vector<double>&, std::size_t);
template void rotate(Tensor4<double>&, Rope, const std::vector<double>&, std::size_t);

}  // namespace attn
