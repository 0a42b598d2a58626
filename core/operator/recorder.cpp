#include "core/operator/recorder.hpp"

#include <utility>

#include "core/base/layout.hpp"
#include "core/base/torch_math.hpp"

namespace attn {
namespace {

/// (batch, heads, rows, columns) to x.mean(dim=1), (batch, rows, columns).
template <class T>
void mean_over_heads(const Tensor4<T>& x, T* mean) {
    const std::size_t heads = x.shape(1), matrix = x.shape(2) * x.shape(3);
    for_each_index(x.shape(0), [&](std::size_t b) {
        T* const own = mean + b * matrix;
        sum_over_rows(x.data() + b * heads * matrix, heads, matrix, own);
        for (std::size_t i = 0; i < matrix; ++i) own[i] /= static_cast<T>(heads);
    });
}

}  // namespace

std::vector<std::size_t> Recorder::shape_shown(ArrayId array,
                                               std::span<const std::size_t> shape) const {
    std::vector<std::size_t> sizes;
    sizes.reserve(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        if (shown_.shows(array, axis)) sizes.push_back(shape[axis]);
    return sizes;
}

void Recorder::note_overflow(ArrayId array, std::size_t element,
                             std::span<const std::size_t> shape) {
    if (std::ranges::find(overflows_, array, &Overflow::array) != overflows_.end()) return;
    const std::vector<std::size_t> index = index_of(element, {shape.begin(), shape.end()});
    overflows_.push_back({array, shape_shown(array, index)});
}

template <class T>
T* Recorder::allocate(ArrayId array, std::span<const std::size_t> shape) {
    if (!records(array)) return nullptr;
    Array<T> shown = Array<T>::from_shape(shape_shown(array, shape));
    T* data = shown.data();
    keep_as_is(array, std::move(shown));
    return data;
}

template <class T>
void Recorder::record(ArrayId array, const Tensor4<T>& values) {
    if (!records(array)) return;
    const std::vector<std::size_t>* const heads = chosen_heads(array);
    heads == nullptr ? record_chosen(array, values)
                     : record_chosen(array, picked(values, 1, *heads));
}

template <class T>
void Recorder::record_chosen(ArrayId array, const Tensor4<T>& values) {
    T* buffer = allocate<T>(array, values.shape());
    if (buffer == nullptr) return;
    if (shown_.averages(array))
        mean_over_heads(values, buffer);
    else
        std::copy(values.begin(), values.end(), buffer);
}

template <class T>
void Recorder::record(ArrayId array, const Tensor3<T>& values) {
    const std::array<std::size_t, 4> shape{values.shape(0), 1, values.shape(1), values.shape(2)};
    T* buffer = allocate<T>(array, shape);
    if (buffer != nullptr) std::copy(values.begin(), values.end(), buffer);
}

template float* Recorder::allocate(ArrayId, std::span<const std::size_t>);
template double* Recorder::allocate(ArrayId, std::span<const std::size_t>);
template std::int64_t* Recorder::allocate(ArrayId, std::span<const std::size_t>);
template void Recorder::record(ArrayId, const Tensor4<float>&);
template void Recorder::record(ArrayId, const Tensor4<double>&);
template void Recorder::record_chosen(ArrayId, const Tensor4<float>&);
template void Recorder::record_chosen(ArrayId, const Tensor4<double>&);
template void Recorder::record(ArrayId, const Tensor3<float>&);
template void Recorder::record(ArrayId, const Tensor3<double>&);

void Recorder::keep_as_is(ArrayId array, AnyArray values, bool is_transposed) {
    std::vector<std::string_view> axes = axes_of(array);
    if (is_transposed) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    keep_as_is(array, std::move(values), std::move(axes));
}

void Recorder::keep_as_is(ArrayId array, AnyArray values, std::vector<std::string_view> axes) {
    if (!records(array)) return;
    recorded_.emplace(
        array.index, NamedArray{std::string(array.row().name), std::move(values), std::move(axes)});
}

template <class T>
void Recorder::keep_stream(ArrayId array, RowStream<T> stream) {
    stream.shape = shape_shown(array, stream.shape);
    recorded_.emplace(
        array.index,
        NamedArray{std::string(array.row().name), {}, axes_of(array), std::move(stream)});
}

template void Recorder::keep_stream(ArrayId, RowStream<float>);
template void Recorder::keep_stream(ArrayId, RowStream<double>);

/// Rounds what kernels and statistics wrote, and what is a mean.
void Recorder::keep_type(ArrayId id, NamedArray& array) {
    auto* const numbers = std::get_if<Array<float>>(&array.values);
    if (!is_rounded(type_) || is_inside_softmax(id) || numbers == nullptr) return;
    finish(id, *numbers);
    array.type = type_;
}

std::vector<NamedArray> Recorder::take() {
    std::vector<NamedArray> arrays;
    arrays.reserve(recorded_.size());
    for (auto& [index, array] : recorded_) {
        const std::vector<std::size_t> order = shown_.order_of(ArrayId(index), array.axes);
        if (!std::ranges::is_sorted(order)) {
            array.axes = in_order(array.axes, order);
            array.values =
                std::visit([&](const auto& values) -> AnyArray { return permuted(values, order); },
                           array.values);
        }
        keep_type(ArrayId(index), array);
        arrays.push_back(std::move(array));
    }
    recorded_.clear();
    return arrays;
}

template <class T>
AllHeads<T>::AllHeads(Recorder& recorder, ArrayId array, std::vector<std::size_t> shape)
    : recorder_(recorder), array_(array), shape_(std::move(shape)) {
    if (!recorder.records(array)) return;
    if (recorder.chosen_heads(array) == nullptr && !recorder.averages(array)) {
        data_ = recorder.allocate<T>(array, shape_);
    } else {
        all_ = Array<T>::from_shape(shape_);
        data_ = all_.data();
    }
}

template <class T>
void AllHeads<T>::record() {
    const std::vector<std::size_t>* const heads = recorder_.chosen_heads(array_);
    if (recorder_.averages(array_))
        return recorder_.record(
            array_, Tensor4<T>(std::move(all_), {shape_[0], shape_[1], shape_[2], shape_[3]}));
    if (data_ == nullptr || heads == nullptr) return;
    std::vector<std::size_t> shape = shape_;
    shape[1] = heads->size();
    T* const chosen = recorder_.allocate<T>(array_, shape);
    copy_picked(data_, {shape_, 1}, *heads, chosen);
    all_ = {};
    data_ = nullptr;
}

template class AllHeads<float>;
template class AllHeads<double>;

}  // namespace attn
