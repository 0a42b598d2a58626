// The sizes of one question and the axes that its answer shows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/layer/layer.hpp"
#include "core/operator/arrays.hpp"
#include "core/operator/mask.hpp"

namespace attn {

struct Geometry {
    std::size_t batch = 1, heads = 1, kv_heads = 1;
    std::size_t q_len = 0;     ///< all queries, also where one row of them is computed
    std::size_t past_len = 0;  ///< cached keys, before the new ones
    std::size_t kv_len = 0;    ///< cached and new keys
    std::size_t d_in = 0,
                d_context = 0;     ///< columns of the input and of what gives keys and values
    std::size_t d_k = 0, d_v = 0;  ///< of one head
    bool batched = false;          ///< the answer has a batch axis
    bool with_heads = false;       ///< the answer has a heads axis
    bool separate_heads = false;   ///< sdpa: the answer keeps its heads apart
    bool packed = false;  ///< sdpa: heads lie side by side in the columns, (.., len, heads * d)

    /// Query rows of scores and context.
    std::size_t rows(const Settings& s) const { return s.token ? 1 : q_len; }

    /// From a query's index to its position among the keys, as the settings align them: top-left
    /// where they say nothing.
    PositionOffset offset(const Settings& s) const {
        if (s.causal_align == CausalAlign::bottom_right)
            return PositionOffset::bottom_right(q_len, kv_len, s.kv_lengths);
        return static_cast<std::int64_t>(past_len);
    }
};

/// Whether a layer's answer has a heads axis: multihead always, cross where heads are named.
inline bool has_heads_axis(const Settings& s) {
    return s.mode == Mode::multihead || (s.mode == Mode::cross && s.heads);
}

/// Reads the sizes off the operands and checks that they fit each other and the settings, whose
/// widths and heads must be resolved. Errors: SettingError of kind shape or usage.
Geometry geometry_of(const Settings& settings, const Operands& operands);

/// Which axes the arrays of the answer show. Settings must be resolved.
ShownAxes shown_axes(const Settings& settings, const Geometry& geometry);

/// What the question has, as bits of needs::Need. Settings must be resolved.
unsigned needs_met(const Settings& settings, const Operands& operands);

/// The size of an axis. Settings must be resolved. A double holds also those that no machine has
/// room for.
template <class Number>
Number size_of(Axis axis, const Settings& settings, const Geometry& geometry);

/// The sizes that the answer reports. Settings must be resolved.
Shapes shapes_of(const Settings& settings, const Geometry& geometry);

/// "(2, 6, 3)".
std::string shape_text(const Array<double>& values);

}  // namespace attn
