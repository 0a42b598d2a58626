// Collects the requested arrays, in the rank of the question.
#pragma once

#include <map>
#include <type_traits>
#include <utility>

#include "core/base/named_array.hpp"
#include "core/operator/shown_axes.hpp"

namespace attn {

/// An element that its array's type cannot hold.
struct Overflow {
    ArrayId array;
    std::vector<std::size_t> index;  ///< of the axes that the answer shows
};

template <class Values>
concept Writable = !std::is_const_v<std::remove_reference_t<Values>>;

class Recorder {
public:
    Recorder(const ArraySet& wanted, const ShownAxes& shown, NumberType type = NumberType::float32)
        : wanted_(wanted), shown_(shown), type_(type) {}

    bool records(ArrayId array) const { return wanted_.has(array); }
    /// Whether it is recorded as its mean over the heads.
    bool averages(ArrayId array) const { return records(array) && shown_.averages(array); }

    std::vector<std::string_view> axes_of(ArrayId array) const { return shown_.names(array); }

    /// The heads that the array has, or null if it has all; see ShownAxes.
    const std::vector<std::size_t>* chosen_heads(ArrayId array) const {
        return shown_.chosen(array);
    }

    /// Rounds the array to its type, requested or not, so that the steps after it use what is
    /// recorded: the chosen heads of (batch, heads, rows, columns), without the axes that the array
    /// does not show; of an array without heads (batch, rows, columns).
    template <Writable Values>
    void record(ArrayId array, Values&& values) {
        if (!is_inside_softmax(array)) finish(array, values);
        record(array, std::as_const(values));
    }

    /// Rounds the array to its type.
    template <class Values>
    void finish(ArrayId array, Values& values) {
        const std::span numbers(values.begin(), values.end());
        const std::size_t first = round_all(numbers, type_);
        if (first != numbers.size()) note_overflow(array, first, values.shape());
    }

    /// The first infinity of each array that was made by rounding a finite number to the type.
    const std::vector<Overflow>& overflows() const { return overflows_; }

    /// Records values of the chosen heads alone, as they are.
    template <class T>
    void record_chosen(ArrayId array, const Tensor4<T>& values);

    /// A buffer for the argument of `record_chosen`, to be filled by the caller; null if it is not
    /// requested.
    template <class T>
    T* allocate(ArrayId array, std::span<const std::size_t> shape);

    /// Records an array in its final shape; the last two axes are swapped if it is transposed.
    void keep_as_is(ArrayId array, AnyArray values, bool is_transposed = false);

    void keep_as_is(ArrayId array, AnyArray values, std::vector<std::string_view> axes);

    /// Records a stream of (batch, heads, rows, columns), without the axes that the array does not
    /// show.
    template <class T>
    void keep_stream(ArrayId array, RowStream<T> stream);

    /// The recorded arrays, in the order of `all_arrays`, and their axes in that of the answer.
    std::vector<NamedArray> take();

private:
    /// A softmax is one step: its exponentials and their sum are those of the arithmetic.
    static bool is_inside_softmax(ArrayId array) {
        return ArraySet{"exp_scores", "exp_sink", "softmax_denominator"}.has(array);
    }

    // Of a constant array, later steps would use numbers that are not rounded.
    template <class T>
    void record(ArrayId array, const Tensor4<T>& values);
    template <class T>
    void record(ArrayId array, const Tensor3<T>& values);

    void keep_type(ArrayId id, NamedArray& array);

    void note_overflow(ArrayId array, std::size_t element, std::span<const std::size_t> shape);

    std::vector<std::size_t> shape_shown(ArrayId array, std::span<const std::size_t> shape) const;

    ArraySet wanted_;
    ShownAxes shown_;
    NumberType type_;
    std::vector<Overflow> overflows_;
    std::multimap<std::size_t, NamedArray> recorded_;  ///< by index; elements never move
};

/// A buffer for an array of all heads, of which the recorder keeps the chosen ones or the mean.
template <class T>
class AllHeads {
public:
    /// `shape`: (batch, heads, ...). The recorder must outlive it.
    AllHeads(Recorder& recorder, ArrayId array, std::vector<std::size_t> shape);

    /// Null if the array is not requested.
    T* data() const { return data_; }

    /// To be called once the buffer is filled.
    void record();

private:
    Recorder& recorder_;
    ArrayId array_;
    std::vector<std::size_t> shape_;
    Array<T> all_;  // empty if the buffer is the recorder's
    T* data_ = nullptr;
};

}  // namespace attn
