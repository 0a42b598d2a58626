// The softmax along keys that come block by block: exponents and sums of a tile's lanes.
#pragma once

#include "core/kernels/functions.hpp"
#include "core/kernels/scores.hpp"

namespace attn::kernels {
namespace {

/// A lane's sum is kept in units of 2^exponent. Exponents are whole, so a change of one scales sums
/// without rounding. Lanes never mix: what a lane does depends on its own scores only.
template <class V>
class RunningSoftmax {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;
    /// An exponent starts at 0 and stays while the peak of each block is at most `rise` above it,
    /// and that of the first block at most `fall` below: new exponents are rare, and sums stay far
    /// from overflow and underflow.
    static constexpr T rise = 16, fall = 40;

public:
    /// Elements of room that it needs.
    static constexpr std::size_t size = (3 + partial_sums) * L;

    explicit RunningSoftmax(T* room)
        : exponent_(room), sum_(room + L), peak_(room + 2 * L), block_sum_(room + 3 * L) {}

    void start() {
        for (std::size_t l = 0; l < L; l += W) {
            V::set(0).store(exponent_ + l);
            V::set(0).store(sum_ + l);
        }
    }

    T* exponent() const { return exponent_; }
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

    /// Whether the exponents of the first lanes may stay as they are, given the block's peaks.
    bool holds(std::size_t lanes) const {
        for (std::size_t l = 0; l < lanes; l += W) {
            const V old = V::load(exponent_ + l), settled = settled_exponent(l);
            if (V::any_above(settled, old) || V::any_above(old, settled)) return false;
        }
        return true;
    }

    /// Gives the first lanes the exponents that their peaks ask for. `scale(lane, factor)` is
    /// called for vectors of lanes whose earlier results must be scaled too.
    template <class Scale>
    void settle(std::size_t lanes, Scale scale) {
        for (std::size_t l = 0; l < lanes; l += W) {
            const V old = V::load(exponent_ + l), settled = settled_exponent(l);
            if (!V::any_above(settled, old) && !V::any_above(old, settled)) continue;
            settled.store(exponent_ + l);
            const V factor = V::scale(V::set(1), V::sub(old, settled));
            V::mul(V::load(sum_ + l), factor).store(sum_ + l);
            scale(l, factor);
        }
    }

private:
    /// Round the peak where it lies too far above the exponent, or below it while the lane has seen
    /// nothing yet; else the exponent as it is.
    V settled_exponent(std::size_t lane) const {
        const V old = V::load(exponent_ + lane), peak = V::load(peak_ + lane);
        const V floor = V::where_above(V::load(sum_ + lane), V::set(0), V::set(blocked_score<T>),
                                       V::sub(old, V::set(fall)));
        const V whole = V::round(peak);
        const V raised = V::where_above(peak, V::add(old, V::set(rise)), whole, old);
        const V moved = V::where_above(floor, peak, whole, raised);
        return V::where_above(peak, V::set(least_score<T>), moved, old);
    }

    T *exponent_, *sum_, *peak_, *block_sum_;
};

}  // namespace
}  // namespace attn::kernels
