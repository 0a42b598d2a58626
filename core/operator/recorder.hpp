// Collects the arrays that were asked for, in the rank of the question.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "core/base/named_array.hpp"
#include "core/operator/arrays.hpp"

namespace attn {

class Recorder {
public:
    Recorder(const ArraySet& wanted, const ShownAxes& shown) : wanted_(wanted), shown_(shown) {}

    bool wants(ArrayId array) const { return wanted_.has(array); }
    /// Whether it is wanted as its mean over the heads.
    bool averages(ArrayId array) const { return wants(array) && shown_.averages(array); }

    /// The names of the axes that the array shows.
    std::vector<std::string_view> axes_of(ArrayId array) const { return shown_.names(array); }

    /// Keeps (batch, heads, rows, columns), less the axes that the array does not show.
    template <class T>
    void keep(ArrayId array, const Tensor4<T>& values);

    /// The same of (batch, rows, columns), where the array has no heads.
    template <class T>
    void keep(ArrayId array, const Tensor3<T>& values);

    /// Room for what `keep` would be given, to be filled by the caller; null where it is not
    /// wanted.
    template <class T>
    T* make_room(ArrayId array, const std::array<std::size_t, 4>& shape);

    /// Keeps an array whose shape is already the one to show, the last two axes the other way round
    /// where it is transposed.
    void keep_as_is(ArrayId array, AnyArray values, bool is_transposed = false);

    /// Keeps (batch, heads, rows, columns) that is still to be computed, less the axes that the
    /// array does not show.
    template <class T>
    void keep_stream(ArrayId array, RowStream<T> stream);

    /// What was kept, in the order of `all_arrays`.
    std::vector<NamedArray> take();

private:
    struct Kept {
        ArrayId id;
        NamedArray array;
    };

    std::vector<std::size_t> shape_shown(ArrayId array,
                                         const std::array<std::size_t, 4>& shape) const;

    ArraySet wanted_;
    ShownAxes shown_;
    std::vector<Kept> kept_;
};

}  // namespace attn
