// An array of real numbers in one of the types that a layer computes in.
#pragma once

#include <variant>

#include "core/base/number_type.hpp"
#include "core/base/tensor.hpp"

namespace attn {

/// An array in the type of its computation, so that large arrays exist only once. By default of
/// rank 0 and without elements.
class RealArray {
public:
    RealArray() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): implicit from either type
    RealArray(Array<float> numbers) : numbers_(std::move(numbers)) {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    RealArray(Array<double> numbers) : numbers_(std::move(numbers)) {}

    /// use(the Array of its type): where code for one type begins.
    template <class Use>
    decltype(auto) visit(const Use& use) const {
        return std::visit(use, numbers_);
    }
    template <class Use>
    decltype(auto) visit(const Use& use) {
        return std::visit(use, numbers_);
    }

    const std::vector<std::size_t>& shape() const {
        return visit([](const auto& x) -> const auto& { return x.shape(); });
    }
    std::size_t shape(std::size_t axis) const { return shape()[axis]; }
    std::size_t dimension() const { return shape().size(); }
    std::size_t size() const {
        return visit([](const auto& x) { return x.size(); });
    }

    double bytes() const {
        return visit(
            []<class T>(const Array<T>& x) { return sizeof(T) * static_cast<double>(x.size()); });
    }

    /// Whether the elements are of this type.
    template <class T>
    bool holds() const {
        return std::holds_alternative<Array<T>>(numbers_);
    }

    /// The elements, which must be of this type.
    template <class T>
    const Array<T>& in() const {
        return std::get<Array<T>>(numbers_);
    }
    template <class T>
    Array<T>& in() {
        return std::get<Array<T>>(numbers_);
    }

    /// The elements as T; those of the other type are rounded to the nearest. Leaves the array
    /// empty.
    template <class T>
    Array<T> take() {
        RealArray taken = std::exchange(*this, {});
        return taken.visit([](auto& x) { return Array<T>(std::move(x)); });
    }

private:
    std::variant<Array<double>, Array<float>> numbers_;
};

/// Elements of the dtype that are not set.
inline RealArray reals_of_shape(const std::vector<std::size_t>& shape, NumberType dtype) {
    return for_dtype(dtype, [&]<class T>(T) -> RealArray { return Array<T>::from_shape(shape); });
}

/// Rounds each element to the dtype.
inline RealArray as_reals(Array<double> numbers, NumberType dtype) {
    RealArray reals(std::move(numbers));
    return for_dtype(dtype, [&]<class T>(T) -> RealArray { return reals.take<T>(); });
}

}  // namespace attn
