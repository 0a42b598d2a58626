// The axes of arrays in answers: their names, their order, and which of them are shown.
#pragma once

#include <numeric>
#include <utility>

#include "core/operator/arrays.hpp"
#include "core/operator/choices.hpp"

namespace attn {

/// Where each axis comes from, of axes with these names that are (batch, heads, sequence, d) or
/// some of them; an empty name is that of heads.
inline std::vector<std::size_t> order_of_axes(QkvFormat format,
                                              std::span<const std::string_view> names) {
    const auto letter = [](std::string_view name) {
        return name == "batch" ? 'b' : name == "heads" || name.empty() ? 'h' : 's';
    };
    std::vector<std::size_t> order(names.size()), rank;
    std::iota(order.begin(), order.end(), 0);
    for (char next = 's'; const std::string_view name : names) {
        const char own = letter(name) == 's' ? std::exchange(next, 'd') : letter(name);
        rank.push_back(name_of(qkv_format_names, format).find(own));
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t axis) { return rank[axis]; });
    return order;
}

/// Which of the axes an answer shows.
struct ShownAxes {
    bool batched = true, with_heads = true;
    bool separate_heads = false;     ///< context vectors have the heads axis too
    bool independent_heads = false;  ///< parameters have it
    bool average_heads = false;      ///< attention_weights are their mean over the heads
    QkvFormat order = QkvFormat::bhsd;

    /// The chosen heads, in order, and the key head of each; empty: all.
    std::vector<std::size_t> heads = {}, key_heads = {};

    /// The chosen heads on an array's axis of heads; null: all.
    const std::vector<std::size_t>* chosen(ArrayId array) const {
        const Axis axis = array.row().axes[1];
        if (heads.empty() || (axis != Axis::heads && axis != Axis::kv_heads)) return nullptr;
        return axis == Axis::heads ? &heads : &key_heads;
    }

    bool averages(ArrayId array) const { return average_heads && array == "attention_weights"; }

    /// Whether the answer shows axis `axis` of the array's row.
    bool shows(ArrayId array, std::size_t axis) const {
        switch (array.row().axes[axis]) {
            case Axis::none: return false;
            case Axis::batch: return batched;
            case Axis::heads: return with_heads && !averages(array);
            case Axis::kv_heads:
            case Axis::cache_heads: return with_heads;
            case Axis::heads_apart: return with_heads && separate_heads;
            case Axis::groups: return independent_heads;
            default: return true;
        }
    }

    /// Where the answer's axes come from, of an array with axes of these names.
    std::vector<std::size_t> order_of(ArrayId array,
                                      std::span<const std::string_view> names) const {
        return order_of_axes(array.row().has_order() ? order : QkvFormat::bhsd, names);
    }

    /// The names of the axes that an array shows; a parameter's as if it were not transposed.
    std::vector<std::string_view> names(ArrayId array) const {
        std::vector<std::string_view> names;
        names.reserve(array.row().axes.size());
        for (std::size_t axis = 0; axis < array.row().axes.size(); ++axis)
            if (shows(array, axis))
                names.push_back(axis_name(array.row().axes[axis], separate_heads));
        return names;
    }
};

}  // namespace attn
