// The softmax along keys that come block by block: exponents and sums of a tile's lanes.
#pragma once

#include "core/kernels/math.hpp"
#include "core/kernels/score_steps.hpp"

namespace attn::kernels {
namespace {

/// A row's shift starts at 0, where subtracting it costs no digits, and stays while the peak of
/// each block is at most `highest_rise` above it, and that of the first block that the row sees at
/// most `lowest_fall` = ln(weight_unit) below; else it becomes the peak. New shifts are rare, and
/// the largest weight is kept as at least 1 and as at most 2^36.
constexpr double highest_rise = 11, lowest_fall = 13.862943611198906;

/// The shift that a block's peak asks for: the peak where it lies too far above the shift, or below
/// it while the row has seen nothing yet, so that its sum is 0; else the shift as it is.
template <class V>
inline V settled_shift(V shift, V peak, V sum) {
    using T = typename V::Scalar;
    const V floor = V::where_above(sum, V::set(0), V::set(blocked_score<T>),
                                   V::sub(shift, V::set(T(lowest_fall))));
    const V raised = V::where_above(peak, V::add(shift, V::set(T(highest_rise))), peak, shift);
    const V moved = V::where_above(floor, peak, peak, raised);
    return V::where_above(peak, V::set(blocked_score<T>), moved, shift);
}

/// A lane's sum is kept relative to its shift, e^(score - shift). Lanes never mix: what a lane does
/// depends on its own scores only.
template <class V>
class OnlineSoftmax {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;

public:
    /// Elements of room that it needs.
    static constexpr std::size_t size = (3 + partial_sums) * L;

    explicit OnlineSoftmax(T* room)
        : shift_(room), sum_(room + L), peak_(room + 2 * L), block_sum_(room + 3 * L) {}

    void start() {
        for (std::size_t l = 0; l < L; l += W) {
            V::set(0).store(shift_ + l);
            V::set(0).store(sum_ + l);
        }
    }

    T* shift() const { return shift_; }
    T* sum() const { return sum_; }
    /// The block's largest score in each lane.
    T* peak() const { return peak_; }
    /// Where the weights of a key are added up: several sums a lane, for fewer roundings in a row.
    T* block_sum(std::size_t key) const { return block_sum_ + key % partial_sums * L; }

    void start_block() {
        for (std::size_t l = 0; l < L; l += W) V::set(blocked_score<T>).store(peak_ + l);
        for (std::size_t l = 0; l < partial_sums * L; l += W) V::set(0).store(block_sum_ + l);
    }

    void end_block() {
        for (std::size_t l = 0; l < L; l += W) {
            V partial[partial_sums];
            for (std::size_t i = 0; i < partial_sums; ++i)
                partial[i] = V::load(block_sum_ + i * L + l);
            for (std::size_t half = partial_sums / 2; half != 0; half /= 2)
                for (std::size_t i = 0; i < half; ++i)
                    partial[i] = V::add(partial[i], partial[i + half]);
            V::add(V::load(sum_ + l), partial[0]).store(sum_ + l);
        }
    }

    /// Whether the shifts of the first lanes may stay as they are, given the block's peaks.
    bool holds(std::size_t lanes) const {
        for (std::size_t l = 0; l < lanes; l += W) {
            const V old = V::load(shift_ + l), next = settled(l);
            if (V::any_above(next, old) || V::any_above(old, next)) return false;
        }
        return true;
    }

    /// Gives the first lanes the shifts that their peaks ask for. `scale(lane, factor)` is called
    /// for vectors of lanes whose earlier results must be scaled too.
    template <class Scale>
    void settle(std::size_t lanes, Scale scale) {
        for (std::size_t l = 0; l < lanes; l += W) {
            const V old = V::load(shift_ + l), next = settled(l);
            if (!V::any_above(next, old) && !V::any_above(old, next)) continue;
            next.store(shift_ + l);
            const V factor = rescaling(old, next);
            V::mul(V::load(sum_ + l), factor).store(sum_ + l);
            scale(l, factor);
        }
    }

private:
    V settled(std::size_t lane) const {
        return settled_shift(V::load(shift_ + lane), V::load(peak_ + lane), V::load(sum_ + lane));
    }

    T *shift_, *sum_, *peak_, *block_sum_;
};

}  // namespace
}  // namespace attn::kernels
