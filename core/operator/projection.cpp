#include "core/operator/projection.hpp"

#include "core/base/torch_math.hpp"

namespace attn {
namespace {

/// One group's weight, in the layout of the product: (1, d_in, d_out).
template <class T>
Tensor3<T> applied_matrix(const Projection<T>& p, std::size_t group) {
    const std::size_t d_in = p.d_in(), d_out = p.d_out();
    Tensor3<T> matrix = Tensor3<T>::from_shape({1, d_in, d_out});
    if (is_dry_run()) return matrix;
    for (std::size_t i = 0; i < d_in; ++i)
        for (std::size_t o = 0; o < d_out; ++o) matrix(0, i, o) = p.at(group, o, i);
    return matrix;
}

}  // namespace

template <class T>
Tensor3<T> project(const Tensor3<T>& x, const Projection<T>& p) {
    const std::size_t groups = p.groups(), d_in = x.shape(2), d_out = p.d_out();
    const std::size_t rows = x.shape(0) * x.shape(1);
    Tensor3<T> result = Tensor3<T>::from_shape({x.shape(0), x.shape(1), groups * d_out});
    for (std::size_t group = 0; group < groups; ++group) {
        const Tensor3<T> matrix = applied_matrix(p, group);
        if (is_dry_run()) break;
        for (std::size_t row = 0; row < rows; ++row) {
            T* out = result.data() + (row * groups + group) * d_out;
            multiply_row(x.data() + row * d_in, d_in, matrix.data(), d_out, out);
            if (!p.has_bias()) continue;
            for (std::size_t o = 0; o < d_out; ++o) out[o] += p.bias(group, o);
        }
    }
    return result;
}

template Tensor3<float> project(const Tensor3<float>&, const Projection<float>&);
template Tensor3<double> project(const Tensor3<double>&, const Projection<double>&);

}  // namespace attn
