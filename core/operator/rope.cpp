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
            const TokenPositions& positions, std::size_t first) {
    const std::size_t pairs = frequencies.size(), rows = x.shape(2), width = x.shape(3);
    std::vector<double> cosine(pairs), sine(pairs);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t b = 0; b < x.shape(0); ++b) {
            const double position = positions.at(b, first + row);
            const bool is_known = b != 0 && position == positions.at(b - 1, first + row);
            for (std::size_t i = 0; i < pairs && !is_known; ++i) {
                cosine[i] = std::cos(position * frequencies[i]);
                sine[i] = std::sin(position * frequencies[i]);
            }
            for (std::size_t h = 0; h < x.shape(1); ++h)
                rotate_row<T>(x.data() + ((b * x.shape(1) + h) * rows + row) * width, layout,
                              cosine, sine);
        }
}

template void rotate(Tensor4<float>&, Rope, const std::vector<double>&, const TokenPositions&,
                     std::size_t);
template void rotate(Tensor4<double>&, Rope, const std::vector<double>&, const TokenPositions&,
                     std::size_t);

}  // namespace attn
