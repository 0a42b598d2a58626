// The online softmax over blocks of keys: shifts and sums of a tile's lanes.
#pragma once

#include "core/kernels/score_steps.hpp"

namespace attn::kernels {
namespace {

/// A row's shift starts at 0, where subtracting it costs no digits. It stays while each block's
/// peak is at most `highest_rise` above it, and the peak of the row's first visible block at most
/// `lowest_fall` = ln(weight_unit) below. Otherwise it becomes the peak. New shifts are rare, and
/// the largest weight stays between 1 and 2^36.
constexpr double highest_rise = 11, lowest_fall = 13.862943611198906;

/// The shift after a block with this peak: the peak if it is too far above the shift, or too far
/// below while the row's sum is still 0; otherwise the current shift.
template <class V>
inline V next_shift(V shift, V peak, V sum) {
    using T = typename V::Scalar;
    const V floor = V::where_above(sum, V::set(0), V::set(masked_score<T>),
                                   V::sub(shift, V::set(T(lowest_fall))));
    const V raised = V::where_above(peak, V::add(shift, V::set(T(highest_rise))), peak, shift);
    const V moved = V::where_above(floor, peak, peak, raised);
    return V::where_above(peak, V::set(masked_score<T>), moved, shift);
}

/// The kept value divided by the sum of each lane. That of a lane with a visible key is at least
/// about 1; what is divided by the others is 0 already.
template <class V, class T = typename V::Scalar>
inline void divide_by(const T* sums, const Tile<T>& t, T* quotients) {
    for (std::size_t l = 0; l < V::lanes * V::tile_vectors; l += V::lanes) {
        const V sum = V::max(V::set(T(0x1p-60)), V::load(sums + l));
        V::div(V::set(static_cast<T>(t.kept_value)), sum).store(quotients + l);
    }
}

/// A lane's sum is relative to its shift, e^(score - shift). Lanes are independent: each depends
/// only on its own scores.
template <class V>
class OnlineSoftmax {
    using T = typename V::Scalar;
    static constexpr std::size_t W = V::lanes, L = W * V::tile_vectors;

public:
    /// Elements of the buffer that it needs.
    static constexpr std::size_t size = (3 + partial_sums) * L;

    explicit OnlineSoftmax(T* buffer)
        : shift_(buffer), sum_(buffer + L), peak_(buffer + 2 * L), block_sum_(buffer + 3 * L) {}

    /// A first shift above all scores is replaced by the peak of the row's first visible block.
    void start(T shift = 0) {
        for (std::size_t l = 0; l < L; l += W) {
            V::set(shift).store(shift_ + l);
            V::set(0).store(sum_ + l);
        }
    }

    T* shift() const { return shift_; }
    T* sum() const { return sum_; }
    /// The block's largest score in each lane.
    T* peak() const { return peak_; }
    /// The sums that a key's weights are added to: several per lane, for fewer consecutive
    /// roundings.
    T* block_sum(std::size_t key) const { return block_sum_ + key % partial_sums * L; }

    void start_block() {
        for (std::size_t l = 0; l < L; l += W) V::set(masked_score<T>).store(peak_ + l);
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

    /// Whether the first lanes can keep their shifts, given the block's peaks.
    bool holds(std::size_t lanes) const {
        for (std::size_t l = 0; l < lanes; l += W) {
            const V old = V::load(shift_ + l), next = next_of(l);
            if (V::any_above(next, old) || V::any_above(old, next)) return false;
        }
        return true;
    }

    /// Updates the shifts of the first lanes from their peaks. `scale(lane, factor)` is called for
    /// vectors of lanes whose earlier results must be scaled too.
    template <class Scale>
    void update(std::size_t lanes, Scale scale) {
        for (std::size_t l = 0; l < lanes; l += W) {
            const V old = V::load(shift_ + l), next = next_of(l);
            if (!V::any_above(next, old) && !V::any_above(old, next)) continue;
            next.store(shift_ + l);
            const V factor = rescaling(old, next);
            V::mul(V::load(sum_ + l), factor).store(sum_ + l);
            scale(l, factor);
        }
    }

    /// Adds the term of a sink, a logit for each lane. If no key is visible to a lane, it is the
    /// only term and the shift. `scale` as in update.
    template <class Scale>
    void add_sinks(const T* sinks, std::size_t lanes, Scale scale, T* other_sum = nullptr) {
        for (std::size_t l = 0; l < lanes; l += W) {
            const V sink = V::load(sinks + l);
            sink.store(peak_ + l);
            V::where_above(V::load(sum_ + l), V::set(0), V::load(shift_ + l), sink)
                .store(shift_ + l);
        }
        update(lanes, scale);
        for (std::size_t l = 0; l < lanes; l += W) {
            const V term = exponential(V::sub(V::load(sinks + l), V::load(shift_ + l)));
            V::add(V::load(sum_ + l), term).store(sum_ + l);
            if (other_sum != nullptr) V::add(V::load(other_sum + l), term).store(other_sum + l);
        }
    }

private:
    V next_of(std::size_t lane) const {
        return next_shift(V::load(shift_ + lane), V::load(peak_ + lane), V::load(sum_ + lane));
    }

    T *shift_, *sum_, *peak_, *block_sum_;
};

}  // namespace
}  // namespace attn::kernels
