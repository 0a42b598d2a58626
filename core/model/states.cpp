#include "core/model/states.hpp"

#include <algorithm>

#include "core/base/layout.hpp"

namespace attn {

States::States(NumberType dtype, std::size_t depth, std::size_t rows, std::size_t columns)
    : dtype_(dtype) {
    for_dtype(dtype, [&]<class T>(T) { x_ = Tensor3<T>::from_shape({depth, rows, columns}); });
}

States States::zeros(NumberType dtype, std::size_t depth, std::size_t rows, std::size_t columns) {
    States x(dtype, depth, rows, columns);
    std::visit([]<class T, class Shape>(ShapedArray<T, Shape>& own) { own.fill(T{0}); }, x.x_);
    return x;
}

States::States(RealArray x, NumberType dtype, const std::array<std::size_t, 3>& shape)
    : dtype_(dtype) {
    for_dtype(dtype, [&]<class T>(T) { x_ = Tensor3<T>(x.take<T>(), shape); });
    round();
}

States States::shaped(std::size_t depth, std::size_t rows, std::size_t columns) && {
    std::visit([&](auto& x) { x.reshape({depth, rows, columns}); }, x_);
    return std::move(*this);
}

RealArray States::reals() && {
    return std::visit(
        []<class T>(Tensor3<T>& x) -> RealArray {
            const std::vector<std::size_t> shape(x.shape().begin(), x.shape().end());
            return Array<T>(std::move(x), shape);
        },
        x_);
}

AnyArray States::array(std::vector<std::size_t> shape) && {
    return std::visit(
        [&]<class T>(Tensor3<T>& x) -> AnyArray { return Array<T>(std::move(x), shape); }, x_);
}

void add(States& x, const States& y) {
    map(x, y, [](double a, double b) { return a + b; });
}

void scale(States& x, double factor) {
    const double rounded = row_of(x.dtype()).round(factor);
    map(x, [&](double value) { return value * rounded; });
}

void scale(States& x, const std::vector<double>& factors) {
    if (factors.empty()) return;
    const auto round = row_of(x.dtype()).round;
    std::vector<double> rounded;
    rounded.reserve(factors.size());
    for (const double factor : factors) rounded.push_back(round(factor));
    map(x, [&](double value, std::size_t i) { return value * rounded[i % rounded.size()]; });
}

void clip(States& x, double limit) {
    const double bound = row_of(x.dtype()).round(limit);
    map(x, [&](double value) { return std::clamp(value, -bound, bound); });
}

States pick(const States& x, std::size_t axis, const std::vector<std::size_t>& indices) {
    return x.with([&](const auto& numbers) { return picked(numbers, axis, indices); });
}

States slice(const States& x, std::size_t axis, std::size_t first, std::size_t count) {
    return x.with([&](const auto& numbers) { return sliced(numbers, axis, first, count); });
}

void put(States& x, std::size_t axis, std::size_t first, const States& part) {
    for_dtype(x.dtype(), [&]<class T>(T) { put(x.numbers<T>(), axis, first, part.numbers<T>()); });
}

States joined(std::size_t axis, const States& first, const States& last) {
    if (first.empty()) return last;
    if (last.empty()) return first;
    return first.with(
        [&]<class T>(const Tensor3<T>& x) { return joined(axis, x, last.numbers<T>()); });
}

void clear_rows(States& x, std::size_t first, std::size_t count) {
    put(x, 1, first, States::zeros(x.dtype(), x.depth(), count, x.columns()));
}

States split(const States& x, std::size_t heads) {
    const std::size_t tokens = x.rows(), d = x.columns() / heads;
    States out(x.dtype(), heads, tokens, d);
    numbers_of(out, x)([&](auto* to, const auto* from) {
        copy_swapped(from, {1, tokens, heads, d}, to);
    });
    return out;
}

States merged(const States& x) {
    const std::size_t heads = x.depth(), tokens = x.rows(), d = x.columns();
    States out(x.dtype(), 1, tokens, heads * d);
    numbers_of(out, x)([&](auto* to, const auto* from) {
        copy_swapped(from, {1, heads, tokens, d}, to);
    });
    return out;
}

}  // namespace attn
