#include "core/operator/cuda_dropout.hpp"

namespace attn {

template <class T>
Tensor4<T> dropout_mask(const Dropout& d, std::size_t first_query,
                        const std::array<std::size_t, 4>& shape) {
    const auto [batch, heads, rows, keys] = shape;
    Tensor4<T> mask = Tensor4<T>::from_shape(shape);
    if (d.p == 0 || d.p == 1) {
        mask.fill(d.p == 0 ? T{1} : T{0});
        return mask;
    }
    // PyTorch divides the mask of ones by 1 - p in the tensor's type.
    const double keep_probability = 1 - d.p;
    const T kept_value = T{1} / static_cast<T>(keep_probability);
    if (d.cuda) {
        const CudaDropout draws(d, batch, heads, d.columns(keys));
        T* out = mask.data();
        for (std::size_t b = 0; b < batch; ++b)
            for (std::size_t h = 0; h < heads; ++h)
                for (std::size_t q = first_query; q < first_query + rows; ++q)
                    for (std::size_t k = d.first_key; k < d.first_key + keys; ++k)
                        *out++ = draws.keeps({b, h, q, k}) ? kept_value : T{0};
        return mask;
    }
    if (!d.generator) return mask;
    TorchGenerator generator = *d.generator;
    std::optional<Mcg31> mkl;
    const auto uniform = [&] { return mkl ? mkl->next() : generator.uniform01<double>(); };
    const auto skip = [&](std::uint64_t count) {
        if (count != 0) mkl ? mkl->skip(count) : generator.skip(2 * count);
    };
    const std::uint64_t columns = d.columns(keys);
    const std::size_t dropouts = d.head_by_head ? heads : 1, matrices = batch * heads / dropouts;
    for (std::size_t dropout = 0; dropout < dropouts; ++dropout) {
        if (d.stream == DropoutStream::mkl) mkl.emplace(generator.draw32());
        for (std::size_t matrix = 0; matrix < matrices; ++matrix) {
            T* out = mask.data() + (matrix * dropouts + dropout) * rows * keys;
            skip(first_query * columns);
            for (std::size_t row = 0; row < rows; ++row, out += keys) {
                skip(d.first_key);
                std::generate_n(out, keys,
                                [&] { return uniform() < keep_probability ? kept_value : T{0}; });
                skip(columns - d.first_key - keys);
            }
            skip((d.q_len - first_query - rows) * columns);
        }
    }
    return mask;
}

template Tensor4<float> dropout_mask(const Dropout&, std::size_t,
                                     const std::array<std::size_t, 4>&);
template Tensor4<double> dropout_mask(const Dropout&, std::size_t,
                                      const std::array<std::size_t, 4>&);

}  // namespace attn
