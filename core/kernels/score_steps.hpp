// What happens to a tile's scores between the product and the softmax.
#pragma once

#include "core/kernels/math.hpp"

namespace attn::kernels {
namespace {

template <class T>
constexpr T blocked_score = T(-__builtin_huge_val());

/// The least of the scores above `blocked_score`.
template <class T>
constexpr T least_score = sizeof(T) == 4 ? T(-__FLT_MAX__) : T(-__DBL_MAX__);

/// A row's shift starts at 0, where subtracting it costs no digits, and stays while the peak of
/// each block is at most `highest_rise` above it, and that of the first block that the row sees at
/// most `lowest_fall` = ln(weight_unit) below; else it becomes the peak. New shifts are rare, and
/// the largest weight is kept as at least 1 and as at most 2^36.
constexpr double highest_rise = 11, lowest_fall = 13.862943611198906;

/// What queries are multiplied by before the product.
template <class T>
T query_factor(const Tile<T>& t) {
    if (t.scales_scores) return 1;
    return static_cast<T>(t.softcap == 0 ? t.scale : t.scale / t.softcap);
}

/// Whether something happens to scores between the product and the softmax, masks apart.
template <class T>
bool has_modifiers(const Tile<T>& t) {
    return t.scales_scores || t.softcap != 0 || t.alibi || t.bias_count != 0;
}

/// What query_factor() left out: the scale, divided by the soft cap.
template <class V, class T = typename V::Scalar>
inline V scaled(V score, const Tile<T>& t) {
    const V product = V::mul(score, V::set(static_cast<T>(t.scale)));
    return t.softcap == 0 ? product : V::div(product, V::set(static_cast<T>(t.softcap)));
}

/// c tanh(score); the product has divided by c already.
template <class V>
inline V capped(V score, double softcap) {
    return V::mul(V::set(static_cast<typename V::Scalar>(softcap)), tanh(score));
}

/// Adds an additive mask; -Infinity blocks, whatever the score is.
template <class V>
inline V with_bias(V score, V bias) {
    using T = typename V::Scalar;
    return V::where_above(V::set(least_score<T>), bias, V::set(blocked_score<T>),
                          V::add(score, bias));
}

/// Adds alibi: slope (key - position).
template <class V, class T = typename V::Scalar>
inline void add_distance(const Tile<T>& t, const Strip& s, std::size_t lane, T* column,
                         std::size_t stride) {
    T distance[V::lanes];
    for (std::size_t l = 0; l < V::lanes; ++l)
        distance[l] =
            static_cast<T>(static_cast<std::ptrdiff_t>(s.first_key) - t.position[lane + l]);
    const V slope = V::load(t.slope + lane);
    for (std::size_t k = 0; k < s.keys; ++k) {
        const V from = V::add(V::load(distance), V::set(static_cast<T>(k)));
        V::fma(slope, from, V::load(column + k * stride)).store(column + k * stride);
    }
}

template <class V, class T = typename V::Scalar>
inline void add_bias(const Bias<T>& bias, const Strip& s, std::size_t lane, T* column,
                     std::size_t stride) {
    constexpr std::size_t W = V::lanes;
    const T* const* rows = bias.row + lane;
    const auto add = [&](std::size_t k, V summand) {
        with_bias(V::load(column + k * stride), summand).store(column + k * stride);
    };
    if (bias.key_step == 0) {
        T lanes[W];
        for (std::size_t r = 0; r < W; ++r) lanes[r] = *rows[r];
        for (std::size_t k = 0; k < s.keys; ++k) add(k, V::load(lanes));
        return;
    }
    for (std::size_t k = 0; k < s.keys; k += W) {
        const std::size_t filled = s.keys - k < W ? s.keys - k : W;
        V square[W];
        for (std::size_t r = 0; r < W; ++r)
            square[r] = V::load_first(rows[r] + s.first_key + k, filled);
        V::transpose(square);
        for (std::size_t i = 0; i < filled; ++i) add(k + i, square[i]);
    }
}

/// Scale, soft cap, alibi, additive masks and blocking masks on one vector of lanes: the strip's
/// keys lie down the column, a tile's lanes apart.
template <class V, class T = typename V::Scalar>
inline void modify_scores(const Tile<T>& t, const Strip& s, std::size_t vector, T* column) {
    constexpr std::size_t stride = V::lanes * V::tile_vectors;
    const std::size_t lane = vector * V::lanes;
    const auto each = [&](auto change) {
        for (std::size_t k = 0; k < s.keys; ++k)
            change(k, V::load(column + k * stride)).store(column + k * stride);
    };
    if (t.scales_scores) each([&](std::size_t, V x) { return scaled(x, t); });
    if (t.softcap != 0) each([&](std::size_t, V x) { return capped(x, t.softcap); });
    if (t.alibi) add_distance<V>(t, s, lane, column, stride);
    for (std::size_t b = 0; b < t.bias_count; ++b)
        add_bias<V>(t.biases[b], s, lane, column, stride);
    if (s.visible != nullptr)
        each([&](std::size_t k, V x) {
            return V::where(s.visible[k] >> lane, x, V::set(blocked_score<T>));
        });
}

}  // namespace
}  // namespace attn::kernels
