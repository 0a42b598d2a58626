#include "core/layer/norm.hpp"

#include <cmath>
#include <cstddef>

namespace attn {

template <class T>
void normalise(const InputNorm& norm, std::span<T> row) {
    const double count = static_cast<double>(row.size());
    double mean = 0, squares = 0;
    if (!norm.is_rms) {
        for (T x : row) mean += static_cast<double>(x);
        mean /= count;
    }
    for (T x : row) squares += (static_cast<double>(x) - mean) * (static_cast<double>(x) - mean);
    const double factor = 1 / std::sqrt(squares / count + norm.eps);
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double shift = norm.bias.empty() ? 0.0 : norm.bias[i];
        row[i] =
            static_cast<T>((static_cast<double>(row[i]) - mean) * factor * norm.weight[i] + shift);
    }
}

template void normalise(const InputNorm&, std::span<float>);
template void normalise(const InputNorm&, std::span<double>);

}  // namespace attn
