#include "core/operator/rope.hpp"

#include <cmath>
#include <numbers>

namespace attn {

std::vector<double> rope_frequencies(double base, std::size_t dims,
                                     const std::vector<double>& scaling) {
    std::vector<double> frequencies((dims + 1) / 2);  // an odd column turns with the next
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
        double& frequency = frequencies[i];
        frequency = std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
        if (scaling.empty()) continue;
        const double slow = frequency / scaling[0];
        if (scaling.size() == 1) {
            frequency = slow;
            continue;
        }
        const double low = scaling[1], high = scaling[2];
        const double turns = scaling[3] * frequency / (2 * std::numbers::pi);
        const double fast_part = (turns - low) / (high - low);
        if (turns < low)
            frequency = slow;
        else if (turns <= high)
            frequency = (1 - fast_part) * slow + fast_part * frequency;
    }
    return frequencies;
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
