// PyTorch's dropout masks; see dropout.hpp.
#include "core/dropout.hpp"

namespace attn {
namespace {

/// Walks the extent in draw order; `keep()` draws one element, `skip(n)` passes over n of them.
template <class T, class Keep, class Skip>
void draw_rows(Tensor4<T>& mask, const DropoutExtent& e, T kept_value, Keep keep, Skip skip) {
    T* out = mask.data();
    for (std::size_t matrix = 0; matrix < e.outer * e.inner; ++matrix) {
        skip(e.first_row * e.columns);
        for (std::size_t i = 0; i < e.kept_rows * e.columns; ++i)
            *out++ = keep() ? kept_value : T{0};
        skip((e.rows - e.first_row - e.kept_rows) * e.columns);
    }
}

}  // namespace

template <class T>
Tensor4<T> dropout_mask(double p, DropoutStream stream, const DropoutExtent& extent,
                        TorchGenerator& generator) {
    Tensor4<T> mask =
        Tensor4<T>::from_shape({extent.outer, extent.inner, extent.kept_rows, extent.columns});
    if (p == 0 || p == 1) {
        mask.fill(p == 0 ? T{1} : T{0});
        return mask;
    }
    const double keep_probability = 1 - p;
    // PyTorch divides the mask of ones by 1 - p in the tensor's own type.
    const T kept_value = T{1} / static_cast<T>(keep_probability);
    if (stream == DropoutStream::mkl) {
        Mcg31 mkl(generator.draw32());
        draw_rows(
            mask, extent, kept_value, [&] { return mkl.next() < keep_probability; },
            [&](std::size_t count) { mkl.skip(count); });
    } else {
        draw_rows(
            mask, extent, kept_value, [&] { return generator.bernoulli(keep_probability); },
            [&](std::size_t count) { generator.skip(2 * static_cast<std::uint64_t>(count)); });
    }
    return mask;
}

template Tensor4<float> dropout_mask(double, DropoutStream, const DropoutExtent&, TorchGenerator&);
template Tensor4<double> dropout_mask(double, DropoutStream, const DropoutExtent&, TorchGenerator&);

}  // namespace attn
