// All entry points of one instruction set and type.
#pragma once

#include "core/kernels/draws.hpp"
#include "core/kernels/recurrence.hpp"
#include "core/kernels/tile_attention.hpp"
#include "core/kernels/tile_backward.hpp"
#include "core/kernels/tile_totals.hpp"

namespace attn::kernels {
namespace {

template <class V>
constexpr Entries<typename V::Scalar> entries() {
    return {.lanes = V::lanes * V::tile_vectors,
            .vector_lanes = V::lanes,
            .attend = attend<V>,
            .differentiate = differentiate<V>,
            .total_rows = total_rows<V>,
            .total_keys = total_keys<V>,
            .visit_row = visit_row<V>,
            .project = project<V>,
            .pack = pack<V>,
            .magnitudes = magnitudes<V>,
            .largest = largest<V>,
            .scale_rows = scale_rows<V>,
            .scale = scale<V>,
            .unscale = unscale<V>,
            .running_products = running_products<V>,
            .weigh = weigh<V>,
            .substitute = substitute<V>,
            .read = read<V>,
            .update = update<V>};
}

template <class FloatVector, class DoubleVector, class WordVector>
constexpr EntryTable table_of() {
    return {entries<FloatVector>(), entries<DoubleVector>(), DrawsBy<WordVector>::entries()};
}

}  // namespace
}  // namespace attn::kernels
