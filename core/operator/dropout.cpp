#include "core/operator/dropout.hpp"

#include <algorithm>
#include <array>

namespace attn {

template <class T>
Tensor4<T> dropout_mask(double p, DropoutStream stream, const DropoutExtent& extent,
                        TorchGenerator& generator) {
    Tensor4<T> mask =
        Tensor4<T>::from_shape({extent.outer, extent.inner, extent.kept_rows, extent.kept_columns});
    if (p == 0 || p == 1) {
        mask.fill(p == 0 ? T{1} : T{0});
        return mask;
    }
    if (is_dry_run()) return mask;
    // PyTorch divides the mask of ones by 1 - p in the tensor's type.
    const T kept_value = T{1} / static_cast<T>(1 - p);
    std::optional<Mcg31> mkl;
    if (stream == DropoutStream::mkl) mkl.emplace(generator.draw32());
    const auto uniform = [&] { return mkl ? mkl->next() : generator.uniform01<double>(); };
    const auto skip = [&](std::uint64_t count) {
        if (count != 0) mkl ? mkl->skip(count) : generator.skip(2 * count);
    };
    const std::uint64_t columns = extent.columns;
    const std::size_t after = extent.columns - extent.first_column - extent.kept_columns;
    T* out = mask.data();
    for (std::size_t matrix = 0; matrix < extent.outer * extent.inner; ++matrix) {
        skip(extent.first_row * columns);
        for (std::size_t row = 0; row < extent.kept_rows; ++row, out += extent.kept_columns) {
            skip(extent.first_column);
            std::generate_n(out, extent.kept_columns,
                            [&] { return uniform() < 1 - p ? kept_value : T{0}; });
            skip(after);
        }
        skip((extent.rows - extent.first_row - extent.kept_rows) * columns);
    }
    return mask;
}

template <class T>
Tensor4<T> dropout_mask(const Dropout& d, std::size_t first_query,
                        const std::array<std::size_t, 4>& shape) {
    const auto [batch, heads, rows, keys] = shape;
    static const TorchGenerator unused(0);  // if p is 0, and in a dry run
    TorchGenerator generator = d.generator ? *d.generator : unused;
    DropoutExtent extent{batch,       heads, d.q_len,     d.columns(keys),
                         first_query, rows,  d.first_key, keys};
    if (!d.head_by_head) return dropout_mask<T>(d.p, d.stream, extent, generator);
    Tensor4<T> mask = Tensor4<T>::from_shape(shape);
    extent.inner = 1;
    const std::size_t matrix = rows * keys;
    for (std::size_t head = 0; head < heads; ++head) {
        const Tensor4<T> one = dropout_mask<T>(d.p, d.stream, extent, generator);
        if (is_dry_run()) break;
        for (std::size_t b = 0; b < batch; ++b)
            std::copy_n(one.data() + b * matrix, matrix, mask.data() + (b * heads + head) * matrix);
    }
    return mask;
}

template Tensor4<float> dropout_mask(double, DropoutStream, const DropoutExtent&, TorchGenerator&);
template Tensor4<double> dropout_mask(double, DropoutStream, const DropoutExtent&, TorchGenerator&);

template Tensor4<float> dropout_mask(const Dropout&, std::size_t,
                                     const std::array<std::size_t, 4>&);
template Tensor4<double> dropout_mask(const Dropout&, std::size_t,
                                      const std::array<std::size_t, 4>&);

}  // namespace attn
