// The arrays that core computes with: a shape, and numbers in row-major order.
#pragma once

#include <array>
#include <cassert>
#include <limits>
#include <type_traits>
#include <vector>

#include "core/base/memory.hpp"

namespace attn {

/// A tensor that owns its elements. `Shape` holds a size for each axis: an array if the rank is
/// fixed, otherwise a vector. A default-constructed or moved-from tensor has no axes and no
/// elements; a shape without axes has one element.
template <class T, class Shape>
class ShapedArray {
public:
    using value_type = T;

    ShapedArray() = default;
    ShapedArray(const ShapedArray& other) : ShapedArray(other.shape_, other.size_) {
        std::copy_n(other.data(), end() - begin(), data());
    }
    ShapedArray(ShapedArray&& other) noexcept { swap(other); }
    ShapedArray& operator=(ShapedArray other) noexcept {
        swap(other);
        return *this;
    }
    ~ShapedArray() = default;

    /// The elements are uninitialised: large memory is touched once, by the code that fills it. In
    /// a dry run the size may exceed every machine's memory.
    static ShapedArray from_shape(const Shape& shape) {
        std::size_t size = 1;
        for (std::size_t length : shape)
            if (__builtin_mul_overflow(size, length, &size))
                size = std::numeric_limits<std::size_t>::max();
        return ShapedArray(shape, size);
    }

    /// The same elements as another type, or with the other kind of shape, of the same rank.
    template <class U, class OtherShape>
    explicit ShapedArray(const ShapedArray<U, OtherShape>& other)
        : ShapedArray(shape_as(other.shape()), other.size()) {
        std::transform(other.data(), other.data() + (end() - begin()), begin(),
                       [](U value) { return static_cast<T>(value); });
    }

    /// Takes the elements of another array, in its memory, with a shape of the same size.
    template <class OtherShape>
    ShapedArray(ShapedArray<T, OtherShape>&& other, const Shape& shape)
        : shape_(shape), size_(std::exchange(other.size_, 0)) {
        other.shape_ = {};
        numbers_.swap(other.numbers_);
    }

    const Shape& shape() const { return shape_; }
    std::size_t shape(std::size_t axis) const { return shape_[axis]; }
    std::size_t dimension() const { return shape_.size(); }
    std::size_t size() const { return size_; }

    T* data() { return numbers_.data(); }
    const T* data() const { return numbers_.data(); }
    /// The range of the elements: empty in a dry run.
    T* begin() { return numbers_.begin(); }
    T* end() { return numbers_.end(); }
    const T* begin() const { return numbers_.begin(); }
    const T* end() const { return numbers_.end(); }

    /// One index for each axis.
    template <class... Index>
    T& operator()(Index... index) {
        return data()[offset(index...)];
    }
    template <class... Index>
    const T& operator()(Index... index) const {
        return data()[offset(index...)];
    }

    void fill(T value) { std::fill(begin(), end(), value); }

    /// Changes the axes, keeping the elements.
    void reshape(Shape shape) { shape_ = std::move(shape); }

    friend bool operator==(const ShapedArray& a, const ShapedArray& b) {
        return a.shape_ == b.shape_ && std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    template <class, class>
    friend class ShapedArray;

    ShapedArray(Shape shape, std::size_t size) : shape_(std::move(shape)), size_(size) {
        numbers_.reserve(size);
    }

    void swap(ShapedArray& other) noexcept {
        std::swap(shape_, other.shape_);
        std::swap(size_, other.size_);
        numbers_.swap(other.numbers_);
    }

    template <class OtherShape>
    static Shape shape_as(const OtherShape& other) {
        Shape shape{};
        if constexpr (std::is_same_v<Shape, std::vector<std::size_t>>) shape.resize(other.size());
        assert(shape.size() == other.size());
        std::copy(other.begin(), other.end(), shape.begin());
        return shape;
    }

    template <class... Index>
    std::size_t offset(Index... index) const {
        assert(sizeof...(index) == shape_.size());
        std::size_t at = 0, axis = 0;
        ((at = at * shape_[axis++] + static_cast<std::size_t>(index)), ...);
        return at;
    }

    Shape shape_{};
    std::size_t size_ = 0;
    AlignedArray<T> numbers_;
};

/// Any rank: the type of inputs and outputs.
template <class T>
using Array = ShapedArray<T, std::vector<std::size_t>>;

/// (groups, columns): a row for each projection.
template <class T>
using Tensor2 = ShapedArray<T, std::array<std::size_t, 2>>;

/// (batch, rows, columns): a batch of matrices.
template <class T>
using Tensor3 = ShapedArray<T, std::array<std::size_t, 3>>;

/// (batch, heads, rows, columns): the operator's own rank.
template <class T>
using Tensor4 = ShapedArray<T, std::array<std::size_t, 4>>;

/// As a double, which can hold sizes beyond any machine's memory.
template <class... Sizes>
double product_of_sizes(Sizes... sizes) {
    return (... * static_cast<double>(sizes));
}

/// "(2, 6, 3)".
std::string shape_text(const std::vector<std::size_t>& shape);

/// The index of an element, given its position in row-major order, and as "[1, 0]".
std::vector<std::size_t> index_of(std::size_t element, const std::vector<std::size_t>& shape);
std::string index_text(const std::vector<std::size_t>& index);
inline std::string index_text(std::size_t element, const std::vector<std::size_t>& shape) {
    return index_text(index_of(element, shape));
}

/// The number of axes, from the last but one on, that start at row `row`; with `next` 1, that end
/// there. Rows are runs of the last axis: these are the brackets that open before a row or close
/// after it.
std::size_t axes_that_turn(const std::vector<std::size_t>& shape, std::size_t row,
                           std::size_t next);

/// The layout of rows of heads: row r of head h of batch entry b starts at data + b * batch + h *
/// head + r * row.
template <class T>
struct HeadRows {
    T* data;
    std::size_t batch, head, row;

    T* at(std::size_t b, std::size_t h, std::size_t r) const {
        return data + b * batch + h * head + r * row;
    }
};

}  // namespace attn
