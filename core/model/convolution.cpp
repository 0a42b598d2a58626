#include "core/model/convolution.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace attn {
namespace {

/// Tokens after the convolution whose inputs are gathered at once.
constexpr std::size_t frames_at_once = 2048;

}  // namespace

template <class T>
Tensor3<T> convolve(const Compute& compute, const Convolution& convolution, const Tensor3<T>& x) {
    const std::size_t taps = convolution.taps(), tokens = x.shape(1), width = x.shape(2);
    const std::size_t padded = tokens + 2 * convolution.padding;
    if (width != convolution.d_in())
        throw SettingError(ErrorKind::input, "model",
                           "the input of a convolution has " + std::to_string(width) +
                               " channels; expected " + std::to_string(convolution.d_in()));
    if (padded < taps)
        throw SettingError(ErrorKind::input, "model",
                           "the input of a convolution of " + std::to_string(taps) + " taps has " +
                               std::to_string(tokens) + " frames; expected at least " +
                               std::to_string(taps - 2 * convolution.padding));
    const std::size_t frames = (padded - taps) / convolution.stride + 1,
                      d_out = convolution.d_out(), groups = convolution.groups,
                      before = width / groups, after = d_out / groups;
    Tensor3<T> out = Tensor3<T>::from_shape({1, frames, d_out});
    LinearMap map;
    map.weight = convolution.weight;
    map.bias = convolution.bias;
    map.d_in = before * taps;
    map.d_out = after;
    for (std::size_t first = 0; first < frames; first += frames_at_once) {
        const std::size_t count = std::min(frames_at_once, frames - first);
        for (std::size_t group = 0; group < groups; ++group) {
            Tensor3<T> rows = Tensor3<T>::from_shape({1, count, map.d_in});
            for (std::size_t f = 0; f < count; ++f)
                for (std::size_t tap = 0; tap < taps; ++tap) {
                    const std::size_t at = (first + f) * convolution.stride + tap;
                    const bool is_inside =
                        at >= convolution.padding && at - convolution.padding < tokens;
                    const T* const from =
                        is_inside ? x.data() + (at - convolution.padding) * width + group * before
                                  : nullptr;
                    for (std::size_t c = 0; c < before; ++c)
                        rows.data()[f * map.d_in + c * taps + tap] = is_inside ? from[c] : T{0};
                }
            map.first = group * after * map.d_in;
            map.first_bias = group * after;
            const Tensor3<T> made = apply(compute, map, rows);
            for (std::size_t f = 0; f < count; ++f)
                std::copy_n(made.data() + f * after, after,
                            out.data() + (first + f) * d_out + group * after);
        }
    }
    return out;
}

template <class T>
void norm_channels(const NormSpec& norm, std::size_t groups, Tensor3<T>& x) {
    const std::size_t tokens = x.shape(1), width = x.shape(2), each = width / groups;
    const std::vector<double> weight = elements_of(norm.weight), bias = elements_of(norm.bias);
    const double count = static_cast<double>(tokens * each);
    for (std::size_t group = 0; group < groups; ++group) {
        double mean = 0, squares = 0;
        const auto at = [&](std::size_t t, std::size_t i) -> T& {
            return x.data()[t * width + group * each + i];
        };
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t i = 0; i < each; ++i) mean += static_cast<double>(at(t, i));
        mean /= count;
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t i = 0; i < each; ++i) {
                const double centred = static_cast<double>(at(t, i)) - mean;
                squares += centred * centred;
            }
        const double factor = 1 / std::sqrt(squares / count + norm.eps);
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t i = 0; i < each; ++i) {
                double y = (static_cast<double>(at(t, i)) - mean) * factor;
                if (!weight.empty()) y *= weight[group * each + i];
                if (!bias.empty()) y += bias[group * each + i];
                at(t, i) = static_cast<T>(y);
            }
    }
}

template Tensor3<float> convolve(const Compute&, const Convolution&, const Tensor3<float>&);
template Tensor3<double> convolve(const Compute&, const Convolution&, const Tensor3<double>&);
template void norm_channels(const NormSpec&, std::size_t, Tensor3<float>&);
template void norm_channels(const NormSpec&, std::size_t, Tensor3<double>&);

}  // namespace attn
