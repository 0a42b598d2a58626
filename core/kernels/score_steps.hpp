// The steps on scores between the product and the softmax: every kind in its form for tiles, for
// rows along keys and for one score.
//
// A switch without a case for a kind is a warning, and so an error in CI. The forms differ in their
// roundings: alibi is one fused multiply-add in tiles, two operations in rows.
#pragma once

#include "core/kernels/formula.hpp"

namespace attn::kernels {
namespace {

template <class T>
constexpr T masked_score = T(-__builtin_huge_val());

/// The least of the scores above `masked_score`.
template <class T>
constexpr T min_score = sizeof(T) == 4 ? T(-__FLT_MAX__) : T(-__DBL_MAX__);

/// Whether there are steps between the product and the softmax, other than masks.
template <class T>
bool has_steps(const Tile<T>& t) {
    return t.step_count > t.folded_steps;
}

template <class V>
inline V scaled(V score, V factor, V divisor) {
    return V::div(V::mul(score, factor), divisor);
}

/// c tanh(score); the product has divided by c already.
template <class V>
inline V capped(V score, V cap) {
    return V::mul(cap, tanh(score));
}

/// Adds an additive mask; -Infinity masks whatever the score is.
template <class V>
inline V with_bias(V score, V bias) {
    using T = typename V::Scalar;
    return V::where_above(V::set(min_score<T>), bias, V::set(masked_score<T>), V::add(score, bias));
}

/// The scores of one vector of lanes: the strip's keys run down the column, at a distance of a
/// tile's lanes.
template <class V>
struct Column {
    using T = typename V::Scalar;
    static constexpr std::size_t stride = V::lanes * V::tile_vectors;
    T* scores;
    std::size_t keys, lane;  ///< the first lane

    template <class Change>
    void each(Change change) const {
        for (std::size_t k = 0; k < keys; ++k)
            change(k, V::load(scores + k * stride)).store(scores + k * stride);
    }
};

/// What the slope of alibi is multiplied by.
template <class T>
inline T alibi_factor(const Step<T>& step, std::ptrdiff_t distance) {
    return static_cast<T>(step.is_signed || distance < 0 ? distance : -distance);
}

template <class V, class T = typename V::Scalar>
inline void add_distance(const Step<T>& step, const Tile<T>& t, const Strip& s, V slope,
                         const Column<V>& column) {
    T distance[V::lanes];
    for (std::size_t l = 0; l < V::lanes; ++l)
        distance[l] =
            static_cast<T>(static_cast<std::ptrdiff_t>(s.first_key) - t.position[column.lane + l]);
    column.each([&](std::size_t k, V score) {
        const V from = V::add(V::load(distance), V::set(static_cast<T>(k)));
        return V::fma(slope, step.is_signed ? from : V::sub(V::set(0), V::abs(from)), score);
    });
}

template <class V, class T = typename V::Scalar>
inline void add_bias(const Step<T>& bias, const Strip& s, const Column<V>& column) {
    constexpr std::size_t W = V::lanes;
    const T* const* rows = bias.row + column.lane;
    if (bias.key_step == 0) {
        T lanes[W];
        for (std::size_t r = 0; r < W; ++r) lanes[r] = *rows[r];
        return column.each([&](std::size_t, V score) { return with_bias(score, V::load(lanes)); });
    }
    for (std::size_t k = 0; k < s.keys; k += W) {
        const std::size_t filled = s.keys - k < W ? s.keys - k : W;
        V square[W];
        for (std::size_t r = 0; r < W; ++r)
            square[r] = V::load_first(rows[r] + s.first_key + k, filled);
        V::transpose(square);
        for (std::size_t i = 0; i < filled; ++i) {
            T* score = column.scores + (k + i) * column.stride;
            with_bias(V::load(score), square[i]).store(score);
        }
    }
}

template <class V, class T = typename V::Scalar>
inline void apply_to_column(const Step<T>& step, const Tile<T>& t, const Strip& s,
                            const Column<V>& column) {
    const V number = V::load(step.number + column.lane), divisor = V::set(step.divisor);
    switch (step.kind) {
        case StepKind::scale:
            return column.each([&](std::size_t, V x) { return scaled(x, number, divisor); });
        case StepKind::softcap:
            return column.each([&](std::size_t, V x) { return capped(x, number); });
        case StepKind::alibi: return add_distance<V>(step, t, s, number, column);
        case StepKind::formula: {
            T position[V::lanes], head[V::lanes];
            for (std::size_t l = 0; l < V::lanes; ++l) {
                position[l] = formula_value(step, t, column.lane + l, 0, Variable::q);
                head[l] = formula_value(step, t, column.lane + l, 0, Variable::h);
            }
            return apply_formula<V>(
                *step.formula, s.keys, column.scores, column.stride,
                [&](Variable variable, std::size_t k) {
                    if (variable == Variable::q || variable == Variable::qpos)
                        return V::load(position);
                    if (variable == Variable::h) return V::load(head);
                    return V::set(formula_value(step, t, column.lane, s.first_key + k, variable));
                });
        }
        case StepKind::bias: return add_bias<V>(step, s, column);
    }
}

/// Where the soft cap leaves its derivative by the score: that of the strip's first key and first
/// lane, and the distance of keys; null: it does not.
template <class T>
struct Slopes {
    T* start = nullptr;
    std::size_t stride = 0;
};

/// The soft cap and its derivative, 1 - tanh^2, or 0 for NaN. Where tanh is near 1 it is
/// 4 h / (1 + h)^2 with h = e^(-2 |x|), which does not cancel.
template <class V, class T = typename V::Scalar>
inline void cap_with_slope(const Step<T>& step, const Column<V>& column, Slopes<T> slopes) {
    const V cap = V::load(step.number + column.lane), one = V::set(1);
    column.each([&](std::size_t k, V x) {
        const V level = tanh(x), size = V::abs(x);
        const V h = V::mul(exponential(V::mul(size, V::set(-2))), V::set(T(1 / weight_unit)));
        const V far = V::div(V::mul(h, V::set(4)), V::mul(V::add(one, h), V::add(one, h)));
        const V slope = V::where_above(size, one, far, V::sub(one, V::mul(level, level)));
        V::max(slope, V::set(0)).store(slopes.start + k * slopes.stride + column.lane);
        return V::mul(cap, level);
    });
}

/// The remaining steps and the masks, on one vector of lanes.
template <class V, class T = typename V::Scalar>
inline void modify_column(const Tile<T>& t, const Strip& s, const Column<V>& column,
                          Slopes<T> slopes = {}) {
    for (std::size_t i = t.folded_steps; i < t.step_count; ++i)
        if (slopes.start != nullptr && t.steps[i].kind == StepKind::softcap)
            cap_with_slope(t.steps[i], column, slopes);
        else
            apply_to_column(t.steps[i], t, s, column);
    if (s.visible != nullptr)
        column.each([&](std::size_t k, V x) {
            return V::where(s.visible[k] >> column.lane, x, V::set(masked_score<T>));
        });
}

/// On the scores of one row, the strip's keys contiguous; elements past them are arbitrary.
template <class V, class T = typename V::Scalar>
inline void apply_to_row(const Step<T>& step, const Tile<T>& t, const Strip& s, std::size_t row,
                         T* scores) {
    constexpr std::size_t W = V::lanes;
    const auto each = [&](auto change) {
        for (std::size_t k = 0; k < s.keys; k += W)
            change(k, V::load(scores + k)).store(scores + k);
    };
    const T number = step.number[row];
    switch (step.kind) {
        case StepKind::scale:
            return each(
                [&](std::size_t, V x) { return scaled(x, V::set(number), V::set(step.divisor)); });
        case StepKind::softcap:
            return each([&](std::size_t, V x) { return capped(x, V::set(number)); });
        case StepKind::alibi:
            for (std::size_t k = 0; k < s.keys; ++k) {
                const auto key = static_cast<std::ptrdiff_t>(s.first_key + k);
                scores[k] += number * alibi_factor(step, key - t.position[row]);
            }
            return;
        case StepKind::formula:
            return apply_formula<V>(*step.formula, (s.keys + W - 1) / W, scores, W,
                                    [&](Variable variable, std::size_t i) {
                                        if (variable != Variable::k && variable != Variable::kpos)
                                            return V::set(formula_value(step, t, row, 0, variable));
                                        T keys[W];
                                        for (std::size_t k = 0; k < W; ++k)
                                            keys[k] = formula_value(
                                                step, t, row, s.first_key + i * W + k, variable);
                                        return V::load(keys);
                                    });
        case StepKind::bias:
            return each([&](std::size_t k, V x) {
                const T* from = step.row[row] + (s.first_key + k) * step.key_step;
                const std::size_t filled = s.keys - k < W ? s.keys - k : W;
                return with_bias(x,
                                 step.key_step == 0 ? V::set(*from) : V::load_first(from, filled));
            });
    }
}

/// The remaining steps and the masks, on one row; past the strip's end everything is masked.
template <class V, class T = typename V::Scalar>
inline void modify_row(const Tile<T>& t, const Strip& s, std::size_t row, T* scores) {
    for (std::size_t i = t.folded_steps; i < t.step_count; ++i)
        apply_to_row<V>(t.steps[i], t, s, row, scores);
    if (s.visible != nullptr)
        for (std::size_t k = 0; k < s.keys; ++k)
            if ((s.visible[k] >> row & 1) == 0) scores[k] = masked_score<T>;
    for (std::size_t k = s.keys; k % V::lanes != 0; ++k) scores[k] = masked_score<T>;
}

template <class T>
inline T bias_of(const Step<T>& step, std::size_t lane, std::size_t key) {
    return step.row[lane][key * step.key_step];
}

/// On one score, as in the reference.
template <class T>
inline T apply_plainly(const Step<T>& step, const Tile<T>& t, std::size_t lane, std::size_t key,
                       T score) {
    const T number = step.number[lane];
    switch (step.kind) {
        case StepKind::scale: return score * number;
        case StepKind::softcap:
            if (number == 0) return score;
            return number * static_cast<T>(__builtin_tanh(static_cast<double>(score / number)));
        case StepKind::alibi:
            return score +
                   number * alibi_factor(step, static_cast<std::ptrdiff_t>(key) - t.position[lane]);
        case StepKind::formula: {
            using One = OneLane<T>;
            apply_formula<One>(*step.formula, 1, &score, 1, [&](Variable variable, std::size_t) {
                return One::set(formula_value(step, t, lane, key, variable));
            });
            return score;
        }
        case StepKind::bias: return score + bias_of(step, lane, key);
    }
    return score;
}

/// Every step on one score of the product, including those that the fast forms fold into the
/// queries.
template <class T>
inline T modified(const Tile<T>& t, std::size_t lane, std::size_t key, T score) {
    for (std::size_t i = 0; i < t.step_count; ++i)
        score = apply_plainly(t.steps[i], t, lane, key, score);
    return score;
}

}  // namespace
}  // namespace attn::kernels
