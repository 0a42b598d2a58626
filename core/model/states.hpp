// Hidden states and heads in either type of a computation. Primitives alone look at the numbers.
#pragma once

#include <cstddef>
#include <utility>

#include "core/base/named_array.hpp"
#include "core/base/real_array.hpp"

namespace attn {

/// Hidden states, (streams, tokens, width), or heads, (heads, tokens, d). By default empty, of no
/// type.
class States {
public:
    States() = default;
    States(NumberType dtype, std::size_t depth, std::size_t rows, std::size_t columns);
    static States zeros(NumberType dtype, std::size_t depth, std::size_t rows, std::size_t columns);
    template <class T, class Shape>
    States(ShapedArray<T, Shape> x, const std::array<std::size_t, 3>& shape,
           NumberType dtype = dtype_of<T>)
        : States(Tensor3<T>(std::move(x), shape), dtype) {}
    template <class T>
    explicit States(Tensor3<T> x, NumberType dtype = dtype_of<T>)
        : x_(std::move(x)), dtype_(dtype) {
        round();
    }
    /// Takes the numbers as `dtype`.
    States(RealArray x, NumberType dtype, const std::array<std::size_t, 3>& shape);

    NumberType dtype() const { return dtype_; }
    /// Of arrays that are recorded; nothing if it is that of the numbers in memory.
    std::optional<NumberType> rounded_type() const {
        return is_rounded(dtype_) ? std::optional(dtype_) : std::nullopt;
    }
    /// Rounds the numbers to the dtype.
    void round() {
        if (is_rounded(dtype_))
            std::visit([&](auto& x) { round_all(std::span(x.begin(), x.end()), dtype_); }, x_);
    }
    std::size_t depth() const { return shape(0); }
    std::size_t rows() const { return shape(1); }
    std::size_t columns() const { return shape(2); }
    std::size_t shape(std::size_t axis) const {
        return std::visit([&](const auto& x) { return x.shape(axis); }, x_);
    }
    std::size_t size() const {
        return std::visit([](const auto& x) { return x.size(); }, x_);
    }
    bool empty() const { return size() == 0; }

    /// Null unless the numbers are of this type.
    template <class T>
    T* data() {
        auto* const x = std::get_if<Tensor3<T>>(&x_);
        return x == nullptr ? nullptr : x->data();
    }
    template <class T>
    const T* data() const {
        const auto* const x = std::get_if<Tensor3<T>>(&x_);
        return x == nullptr ? nullptr : x->data();
    }
    /// The numbers, which must be of this type.
    template <class T>
    Tensor3<T>& numbers() {
        return std::get<Tensor3<T>>(x_);
    }
    template <class T>
    const Tensor3<T>& numbers() const {
        return std::get<Tensor3<T>>(x_);
    }
    /// work(numbers), which gives an array of their type.
    template <class Work>
    States with(const Work& work) const {
        return std::visit([&](const auto& x) { return States(work(x), dtype_); }, x_);
    }
    /// A number as a double.
    double at(std::size_t i) const {
        return std::visit([&](const auto& x) { return static_cast<double>(x.data()[i]); }, x_);
    }

    /// Another shape of the same size.
    States shaped(std::size_t depth, std::size_t rows, std::size_t columns) &&;
    /// The numbers, which must be of this type.
    template <class T, class Shape>
    ShapedArray<T, Shape> take(const Shape& shape) && {
        return {std::get<Tensor3<T>>(std::move(x_)), shape};
    }
    RealArray reals() &&;                               ///< of rank 3
    AnyArray array(std::vector<std::size_t> shape) &&;  ///< of the same size

private:
    std::variant<Tensor3<float>, Tensor3<double>> x_;
    NumberType dtype_ = NumberType::float32;
};

/// numbers_of(x, y)(work) calls work with pointers to the numbers, in the type of the first; null
/// for empty states. The first states are then rounded to their dtype. In a dry run there are no
/// numbers, and nothing is called.
template <class First, class... Others>
auto numbers_of(First& first, Others&... others) {
    return [&](const auto& work) {
        if (is_dry_run()) return;
        for_dtype(first.dtype(), [&]<class T>(T) {
            work(first.template data<T>(), others.template data<T>()...);
        });
        if constexpr (!std::is_const_v<First>) first.round();
    };
}

/// x = f(x), or f(x, its index), in double and rounded once. One operation of two floats is then
/// what it is in float.
template <class Function>
void map(States& x, const Function& f) {
    numbers_of(x)([&, count = x.size()]<class T>(T* values) {
        for (std::size_t i = 0; i < count; ++i) {
            const auto value = static_cast<double>(values[i]);
            if constexpr (std::is_invocable_v<Function, double, std::size_t>)
                values[i] = static_cast<T>(f(value, i));
            else
                values[i] = static_cast<T>(f(value));
        }
    });
}

/// x = f(x, y), likewise.
template <class Function>
void map(States& x, const States& y, const Function& f) {
    numbers_of(x, y)([&, count = x.size()]<class T>(T* values, const T* others) {
        for (std::size_t i = 0; i < count; ++i)
            values[i] =
                static_cast<T>(f(static_cast<double>(values[i]), static_cast<double>(others[i])));
    });
}

/// x += y.
void add(States& x, const States& y);
/// x *= factor, which is rounded to the type of x; or a factor for each column, if there are any.
void scale(States& x, double factor);
void scale(States& x, const std::vector<double>& factors);
/// Clamps all numbers to [-limit, limit].
void clip(States& x, double limit);

/// The elements at these indices of an axis, in this order.
States pick(const States& x, std::size_t axis, const std::vector<std::size_t>& indices);
/// `count` elements of an axis.
States slice(const States& x, std::size_t axis, std::size_t first, std::size_t count);
/// Writes `part` to indices from `first` on of an axis of x.
void put(States& x, std::size_t axis, std::size_t first, const States& part);
/// One after the other along an axis. Either may be empty.
States joined(std::size_t axis, const States& first, const States& last);
/// Zeros in these rows of all depths.
void clear_rows(States& x, std::size_t first, std::size_t count);

/// (1, tokens, heads * d) to (heads, tokens, d), and back.
States split(const States& x, std::size_t heads);
States merged(const States& x);

}  // namespace attn
