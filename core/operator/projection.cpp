#include "core/operator/projection.hpp"

#include "core/base/torch_math.hpp"

namespace attn {
template <class T>
Tensor3<T> project(const Tensor3<T>& x, const Projection<T>& p, NumberType sum_type) {
    const std::size_t groups = p.groups(), d_in = x.shape(2), d_out = p.d_out();
    const std::size_t rows = x.shape(0) * x.shape(1);
    Tensor3<T> result = Tensor3<T>::from_shape({x.shape(0), x.shape(1), groups * d_out});
    Tensor2<T> matrix = Tensor2<T>::from_shape({d_in, d_out});  // of a group
    for_each_index(groups, [&](std::size_t group) {
        for (std::size_t i = 0; i < d_in; ++i)
            for (std::size_t o = 0; o < d_out; ++o) matrix(i, o) = p.at(group, o, i);
        for (std::size_t row = 0; row < rows; ++row) {
            T* out = result.data() + (row * groups + group) * d_out;
            multiply_row(x.data() + row * d_in, d_in, matrix.data(), d_out, out, sum_type);
            if (!p.has_bias()) continue;
            for (std::size_t o = 0; o < d_out; ++o) out[o] += p.bias(group, o);
            round_all(std::span(out, d_out), sum_type);
        }
    });
    return result;
}

template Tensor3<float> project(const Tensor3<float>&, const Projection<float>&, NumberType);
template Tensor3<double> project(const Tensor3<double>&, const Projection<double>&, NumberType);

}  // namespace attn
