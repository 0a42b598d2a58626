// Collects the requested arrays, in the rank of the question.
#pragma once

#include <map>

#include "core/base/named_array.hpp"
#include "core/operator/shown_axes.hpp"

namespace attn {

class Recorder {
public:
    Recorder(const ArraySet& wanted, const ShownAxes& shown) : wanted_(wanted), shown_(shown) {}

    bool records(ArrayId array) const { return wanted_.has(array); }
    /// Whether it is recorded as its mean over the heads.
    bool averages(ArrayId array) const { return records(array) && shown_.averages(array); }

    std::vector<std::string_view> axes_of(ArrayId array) const { return shown_.names(array); }

    /// The heads that the array has, or null if it has all; see ShownAxes.
    const std::vector<std::size_t>* chosen_heads(ArrayId array) const {
        return shown_.chosen(array);
    }

    /// Records the chosen heads of (batch, heads, rows, columns), without the axes that the array
    /// does not show.
    template <class T>
    void record(ArrayId array, const Tensor4<T>& values);

    /// The same for values of the chosen heads alone.
    template <class T>
    void record_chosen(ArrayId array, const Tensor4<T>& values);

    /// The same for (batch, rows, columns), if the array has no heads.
    template <class T>
    void record(ArrayId array, const Tensor3<T>& values);

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
    std::vector<std::size_t> shape_shown(ArrayId array, std::span<const std::size_t> shape) const;

    ArraySet wanted_;
    ShownAxes shown_;
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
