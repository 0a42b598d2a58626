// Collects the arrays that were asked for; see recorder.hpp.
#include "core/operator/recorder.hpp"

#include <algorithm>

#include "core/base/torch_sum.hpp"

namespace attn {

bool Recorder::wants(std::string_view name) const {
    return std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
}

namespace {

/// (batch, heads, rows, columns) to x.mean(dim=1), (batch, 1, rows, columns).
template <class T>
Tensor4<T> mean_over_heads(const Tensor4<T>& x) {
    Tensor4<T> mean = Tensor4<T>::from_shape({x.shape(0), 1, x.shape(2), x.shape(3)});
    const std::size_t heads = x.shape(1), matrix = x.shape(2) * x.shape(3);
    for (std::size_t b = 0; b < x.shape(0); ++b)
        sum_over_rows(x.data() + b * heads * matrix, heads, matrix, mean.data() + b * matrix);
    for (T& value : mean) value /= static_cast<T>(heads);
    return mean;
}

}  // namespace

template <class T>
T* Recorder::make_room(std::string_view name, const std::array<std::size_t, 4>& shape,
                       std::string_view rows, std::string_view columns) {
    if (!wants(name)) return nullptr;
    std::vector<std::size_t> sizes;
    std::vector<std::string_view> axes;
    sizes.reserve(shape.size());
    axes.reserve(shape.size());
    const auto add = [&](std::size_t size, std::string_view axis) {
        sizes.push_back(size);
        axes.push_back(axis);
    };
    if (batched_) add(shape[0], "batch");
    if (with_heads_ && !averages(name)) add(shape[1], "heads");
    if (!rows.empty()) add(shape[2], rows);
    if (!columns.empty()) add(shape[3], columns);
    Array<T> shown = Array<T>::from_shape(sizes);
    T* data = shown.data();
    keep_as_is(name, std::move(shown), std::move(axes));
    return data;
}

template <class T>
void Recorder::keep(std::string_view name, const Tensor4<T>& values, std::string_view rows,
                    std::string_view columns) {
    T* room = make_room<T>(name, values.shape(), rows, columns);
    if (room == nullptr) return;
    if (averages(name)) {
        const Tensor4<T> mean = mean_over_heads(values);
        std::copy(mean.begin(), mean.end(), room);
    } else {
        std::copy(values.begin(), values.end(), room);
    }
}

template float* Recorder::make_room(std::string_view, const std::array<std::size_t, 4>&,
                                    std::string_view, std::string_view);
template double* Recorder::make_room(std::string_view, const std::array<std::size_t, 4>&,
                                     std::string_view, std::string_view);
template void Recorder::keep(std::string_view, const Tensor4<float>&, std::string_view,
                             std::string_view);
template void Recorder::keep(std::string_view, const Tensor4<double>&, std::string_view,
                             std::string_view);

void Recorder::keep_as_is(std::string_view name, AnyArray values,
                          std::vector<std::string_view> axes) {
    kept_.reserve(wanted_.size());
    if (wants(name)) kept_.push_back({std::string(name), std::move(values), std::move(axes)});
}

template <class T>
void Recorder::keep_stream(std::string_view name, RowStream<T> stream) {
    std::vector<std::string_view> axes{"batch", "heads", "q_len", "kv_len"};
    for (const auto& [shown, axis] : {std::pair(with_heads_, 1), {batched_, 0}})
        if (!shown) {
            axes.erase(axes.begin() + axis);
            stream.shape.erase(stream.shape.begin() + axis);
        }
    kept_.push_back({std::string(name), {}, std::move(axes), std::move(stream)});
}

template void Recorder::keep_stream(std::string_view, RowStream<float>);
template void Recorder::keep_stream(std::string_view, RowStream<double>);

std::vector<NamedArray> Recorder::take() {
    const auto place = [](const NamedArray& array) {
        return std::find(array_names.begin(), array_names.end(), array.name) - array_names.begin();
    };
    std::sort(kept_.begin(), kept_.end(),
              [&](const NamedArray& a, const NamedArray& b) { return place(a) < place(b); });
    return std::move(kept_);
}

}  // namespace attn
