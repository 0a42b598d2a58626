// Collects the arrays that were asked for; see recorder.hpp.
#include "core/recorder.hpp"

#include <algorithm>

namespace attn {

bool Recorder::wants(std::string_view name) const {
    return std::find(wanted_.begin(), wanted_.end(), name) != wanted_.end();
}

template <class T>
void Recorder::keep(std::string_view name, const Tensor4<T>& values, std::string_view rows,
                    std::string_view columns) {
    if (!wants(name)) return;
    std::vector<std::size_t> shape;
    std::vector<std::string_view> axes;
    const auto add = [&](std::size_t size, std::string_view axis) {
        shape.push_back(size);
        axes.push_back(axis);
    };
    if (batched_) add(values.shape(0), "batch");
    if (with_heads_) add(values.shape(1), "heads");
    if (!rows.empty()) add(values.shape(2), rows);
    if (!columns.empty()) add(values.shape(3), columns);
    Array<T> shown = Array<T>::from_shape(shape);
    std::copy(values.begin(), values.end(), shown.begin());
    keep_as_is(name, std::move(shown), std::move(axes));
}

template void Recorder::keep(std::string_view, const Tensor4<float>&, std::string_view,
                             std::string_view);
template void Recorder::keep(std::string_view, const Tensor4<double>&, std::string_view,
                             std::string_view);

void Recorder::keep_as_is(std::string_view name, AnyArray values,
                          std::vector<std::string_view> axes) {
    if (wants(name)) kept_.push_back({std::string(name), std::move(values), std::move(axes)});
}

std::vector<NamedArray> Recorder::take() {
    const auto place = [](const NamedArray& array) {
        return std::find(array_names.begin(), array_names.end(), array.name) - array_names.begin();
    };
    std::sort(kept_.begin(), kept_.end(),
              [&](const NamedArray& a, const NamedArray& b) { return place(a) < place(b); });
    return std::move(kept_);
}

}  // namespace attn
