#include "core/model/states.hpp"

#include <algorithm>
#include <numeric>

namespace attn {
namespace {

/// The runs of numbers of an axis: `outer` of them, each of shape(axis) blocks of `inner` numbers.
struct Runs {
    Runs(const States& x, std::size_t axis) {
        for (std::size_t i = 0; i < 3; ++i)
            if (i != axis) (i < axis ? outer : inner) *= x.shape(i);
    }
    std::size_t outer = 1, inner = 1;
};

States with_length(const States& x, std::size_t axis, std::size_t length) {
    std::size_t shape[3] = {x.depth(), x.rows(), x.columns()};
    shape[axis] = length;
    return {x.dtype(), shape[0], shape[1], shape[2]};
}

}  // namespace

States::States(Dtype dtype, std::size_t depth, std::size_t rows, std::size_t columns) {
    for_dtype(dtype, [&]<class T>(T) { x_ = Tensor3<T>::from_shape({depth, rows, columns}); });
}

States States::zeros(Dtype dtype, std::size_t depth, std::size_t rows, std::size_t columns) {
    States x(dtype, depth, rows, columns);
    std::visit([]<class T, class Shape>(ShapedArray<T, Shape>& own) { own.fill(T{0}); }, x.x_);
    return x;
}

States::States(RealArray x, Dtype dtype, const std::array<std::size_t, 3>& shape) {
    for_dtype(dtype, [&]<class T>(T) { x_ = Tensor3<T>(x.take<T>(), shape); });
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
    const Runs runs(x, axis);
    const std::size_t length = x.shape(axis), count = indices.size();
    States out = with_length(x, axis, count);
    numbers_of(out, x)([&]<class T>(T* to, const T* from) {
        for (std::size_t run = 0; run < runs.outer; ++run, from += length * runs.inner)
            for (std::size_t i = 0; i < count;) {
                std::size_t end = i + 1;  // neighbours are copied at once
                while (end < count && indices[end] == indices[end - 1] + 1) ++end;
                to = std::copy_n(from + indices[i] * runs.inner, (end - i) * runs.inner, to);
                i = end;
            }
    });
    return out;
}

States slice(const States& x, std::size_t axis, std::size_t first, std::size_t count) {
    std::vector<std::size_t> indices(count);
    std::iota(indices.begin(), indices.end(), first);
    return pick(x, axis, indices);
}

void put(States& x, std::size_t axis, std::size_t first, const States& part) {
    const Runs runs(x, axis);
    const std::size_t length = x.shape(axis), count = part.shape(axis) * runs.inner;
    numbers_of(x, part)([&]<class T>(T* to, const T* from) {
        to += first * runs.inner;
        for (std::size_t run = 0; run < runs.outer; ++run, from += count)
            std::copy_n(from, count, to + run * length * runs.inner);
    });
}

States joined(std::size_t axis, const States& first, const States& last) {
    if (first.empty()) return last;
    if (last.empty()) return first;
    States all = with_length(first, axis, first.shape(axis) + last.shape(axis));
    put(all, axis, 0, first);
    put(all, axis, first.shape(axis), last);
    return all;
}

void clear_rows(States& x, std::size_t first, std::size_t count) {
    put(x, 1, first, States::zeros(x.dtype(), x.depth(), count, x.columns()));
}

States split(const States& x, std::size_t heads) {
    const std::size_t tokens = x.rows(), d = x.columns() / heads;
    States out(x.dtype(), heads, tokens, d);
    numbers_of(out, x)([&]<class T>(T* to, const T* from) {
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t t = 0; t < tokens; ++t)
                to = std::copy_n(from + (t * heads + h) * d, d, to);
    });
    return out;
}

States merged(const States& x) {
    const std::size_t heads = x.depth(), tokens = x.rows(), d = x.columns();
    States out(x.dtype(), 1, tokens, heads * d);
    numbers_of(out, x)([&]<class T>(T* to, const T* from) {
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t h = 0; h < heads; ++h)
                to = std::copy_n(from + (h * tokens + t) * d, d, to);
    });
    return out;
}

}  // namespace attn
