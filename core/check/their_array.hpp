// Arrays of another program: as it stores them, and in attn's layout.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/base/stored_type.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// Whether its numbers are indices of keys.
inline bool holds_keys(ArrayId array) {
    return array == "argmax_key" || array == "top_keys";
}

/// Numbers that were printed with few digits differ from the program's by up to half a unit of the
/// last printed one.
struct PrintedDigits {
    int decimals = 0;     ///< the most after the point
    int significant = 0;  ///< the most of a number
    double step = 0;      ///< or numbers are multiples of this, in place of both
    static constexpr int all = 17;

    /// The largest difference of a printed number of about this size.
    double error(double value) const;
};

/// An array as the other program has it.
struct GivenArray {
    ArrayId id;
    std::string name;  ///< what the other program calls it
    std::vector<std::size_t> shape;
    std::vector<double> values;  ///< row-major
    /// That the array is stored in, or that it was said to be computed in.
    NumberType type = NumberType::float32;
    bool type_is_certain = false;               ///< it was said: no smaller type is considered
    std::optional<PrintedDigits> printed = {};  ///< empty: the numbers are exact
    /// Numbers in `type` were rounded once to these words. Empty: the arithmetic is that of `type`.
    std::optional<StoredType> words = {};
    std::optional<std::uint64_t> address = {};  ///< of the first of these words in a memory
};

/// One way to read an array's axes.
struct Layout {
    /// An axis of theirs, or one of several that it merges. Its index is
    /// index[axis] / step % size, where index is that of (batch, heads, rows, columns).
    struct Part {
        std::size_t axis, step, size, stride;
    };
    std::vector<Part> parts;
    /// The names of their axes, "tokens", "heads * d_k"; empty if they are attn's.
    std::vector<std::string> axes;
    /// Whether columns come before rows: keys before queries, or d_v before tokens. Such an array
    /// is the transpose of attn's, and not another order of the batch, the heads and the rows.
    bool is_transposed = false;

    std::size_t offset(const std::array<std::size_t, 4>& index) const;

    /// Whether the last axis is that of attn's columns, as programs nearly always have it.
    bool ends_with_columns() const { return !parts.empty() && parts.front().axis == 3; }
    /// Common orders are below others.
    int rank() const { return is_transposed ? 2 : ends_with_columns() ? 0 : 1; }
};

/// (batch, heads, rows, columns) of an array as the answer to the question has it, with all axes;
/// 1 for those that it does not have. Only the chosen heads and rows count. A weight that is stored
/// as (d_in, d_out) has rows of d_out.
std::array<std::size_t, 4> shape_of_all_axes(const Plan& plan, ArrayId array);

/// All ways to read an array of this shape as attn's: axes in any order, neighbours merged, with
/// more or fewer axes of size 1. attn's own order is first, if it fits, then those that end with
/// columns; transposed ones are last. Empty: none fits.
std::vector<Layout> layouts_of(const Plan& plan, ArrayId array,
                               const std::vector<std::size_t>& shape);

/// The names of attn's own axes, without those of size 1, and any axes as "(heads, q_len)".
std::vector<std::string> own_axes(const Plan& plan, ArrayId array);
std::string axes_text(const std::vector<std::string>& axes);

/// That an array of this shape does not fit, and the flags with which it would: fewer rows, fewer
/// heads, or their mean.
std::string unfit_text(const Plan& plan, ArrayId array, const std::vector<std::size_t>& shape);

/// An array in attn's layout.
struct TheirArray {
    ArrayId id;
    /// (batch, heads, rows, columns), with all axes that attn computes with; 1 for those that the
    /// array does not have.
    std::array<std::size_t, 4> shape;
    std::vector<double> values;  ///< row-major
    NumberType type;             ///< that the program computed in
    std::optional<PrintedDigits> printed = {};
};

TheirArray in_layout(const GivenArray& given, const Layout& layout, const Plan& plan,
                     NumberType type);

}  // namespace attn
