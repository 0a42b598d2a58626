// The decays within one chunk of tokens: from its start, to its end, and between two of its tokens.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "core/linear/recurrence.hpp"

namespace attn {

/// Tokens of a whole chunk. More take more arithmetic, fewer more passes over the state.
inline constexpr std::size_t chunk_tokens = 32;

/// The decays of a chunk, e_i being the factor of token i, as products in the order of time.
///
/// One factor for all dimensions: a table of the products between any two tokens. One each: a
/// product of a query and a key with the decay between them is split into a factor of either, for
/// which a common reference is needed, the first token of the query's segment. A segment ends where
/// the product of its factors would leave [1 / range, range], so that dividing by it is safe.
template <class T>
class ChunkDecay {
public:
    static constexpr std::size_t max_segments = 6;
    /// Splitting multiplies and divides queries and keys by at most this.
    static constexpr T range = static_cast<T>(sizeof(T) == sizeof(float) ? 0x1p30 : 0x1p250);

    static std::size_t scratch_size(std::size_t d_k) {
        return chunk_tokens * (3 * d_k + chunk_tokens);
    }

    ChunkDecay() = default;
    ChunkDecay(const HeadOperands<T>& head, T* scratch)
        : factors_(head.decay), columns_(head.decay == nullptr ? 1 : head.decay_columns),
          d_k_(head.d_k), from_start_(scratch), to_end_(scratch + chunk_tokens * d_k_),
          in_segment_(scratch + 2 * chunk_tokens * d_k_),
          between_(scratch + 3 * chunk_tokens * d_k_) {}

    bool by_dimension() const { return columns_ != 1; }
    std::size_t segments() const { return segments_; }
    /// The first token of a segment and the end of it, counted from the chunk's start.
    std::pair<std::size_t, std::size_t> segment(std::size_t s) const {
        return {starts_[s], starts_[s + 1]};
    }

    /// Reads the chunk's factors. False if they are not finite or their products range too widely.
    bool read(std::size_t first, std::size_t tokens) {
        e_ = factors_ == nullptr ? nullptr : factors_ + first * columns_;
        tokens_ = tokens;
        segments_ = 1;
        starts_[1] = tokens;
        if (e_ == nullptr) {
            std::fill_n(from_start_, tokens, T{1});
            std::fill_n(to_end_, tokens, T{1});
            return true;
        }
        if (!std::all_of(e_, e_ + tokens * columns_, [](T e) { return std::isfinite(e); }))
            return false;
        std::copy_n(e_, columns_, from_start_);
        std::fill_n(to_end_ + (tokens - 1) * columns_, columns_, T{1});
        for (std::size_t i = columns_; i < tokens * columns_; ++i)
            from_start_[i] = from_start_[i - columns_] * e_[i];
        for (std::size_t i = (tokens - 1) * columns_; i-- > 0;)
            to_end_[i] = to_end_[i + columns_] * e_[i + columns_];
        if (by_dimension()) return divide();
        between_[0] = 1;
        for (std::size_t i = 1; i < tokens; ++i) {
            T* const row = between_ + i * chunk_tokens;
            const T* const before = row - chunk_tokens;
            for (std::size_t j = 0; j < i; ++j) row[j] = before[j] * e_[i];
            row[i] = 1;
        }
        return true;
    }

    /// times * the decay from the chunk's start up to token i * x, of each dimension.
    void from_start(std::size_t i, const T* x, T times, T* out) const {
        const T* const factors = from_start_ + i * columns_;
        if (by_dimension())
            for (std::size_t d = 0; d < d_k_; ++d) out[d] = x[d] * factors[d] * times;
        else
            for (std::size_t d = 0; d < d_k_; ++d) out[d] = x[d] * (factors[0] * times);
    }

    /// times * the decay after token j up to token i * products[j], for j = 0 to i. The products
    /// are those of scaled rows, if there is a factor for each dimension.
    void between(std::size_t i, const T* products, T times, T* out) const {
        const T* const row = between_ + i * chunk_tokens;
        if (by_dimension() || e_ == nullptr)
            for (std::size_t j = 0; j <= i; ++j) out[j] = products[j] * times;
        else
            for (std::size_t j = 0; j <= i; ++j) out[j] = products[j] * row[j] * times;
    }

    /// The row of token i, which is in a segment, and keys up to its end, such that their products
    /// have the decay between them. Only of factors by dimension.
    void scale_row(std::size_t i, const T* x, T* out) const {
        const T* const factors = in_segment_ + i * d_k_;
        for (std::size_t d = 0; d < d_k_; ++d) out[d] = x[d] * factors[d];
    }
    void scale_keys(std::size_t s, const T* keys, T* out) const {
        const auto [first, last] = segment(s);
        for (std::size_t i = first * d_k_; i < last * d_k_; ++i) out[i] = keys[i] / in_segment_[i];
        if (first == 0) return;
        // The decay after token j up to the segment's first token, in the place of its result.
        std::copy_n(e_ + first * d_k_, d_k_, out + (first - 1) * d_k_);
        for (std::size_t i = (first - 1) * d_k_; i-- > 0;) out[i] = out[i + d_k_] * e_[i + d_k_];
        for (std::size_t i = 0; i < first * d_k_; ++i) out[i] *= keys[i];
    }

    /// The decays after token j up to the end, and from start to end: one, or one a dimension.
    const T* to_end(std::size_t j) const { return to_end_ + j * columns_; }
    const T* of_chunk() const { return from_start_ + (tokens_ - 1) * columns_; }
    /// The place of a dimension in them.
    std::size_t column(std::size_t d) const { return by_dimension() ? d : 0; }

private:
    /// Divides the chunk into segments.
    bool divide() {
        const bool grows = std::any_of(e_, e_ + tokens_ * d_k_, [](T e) { return e > 1; });
        segments_ = 0;
        for (std::size_t i = 0; i < tokens_; ++i) {
            T* const row = in_segment_ + i * d_k_;
            const T* const before = i == 0 ? row : row - d_k_;
            bool fits = i != 0;
            for (std::size_t d = 0; fits && d < d_k_; ++d) {
                row[d] = before[d] * e_[i * d_k_ + d];
                fits = row[d] >= 1 / range && row[d] <= range;
            }
            if (fits) continue;
            if (segments_ == max_segments) return false;
            starts_[segments_++] = i;
            std::fill_n(row, d_k_, T{1});
        }
        starts_[segments_] = tokens_;
        // Products of factors below and above 1 might leave T's range on the way to one within it.
        return segments_ == 1 || !grows;
    }

    const T *factors_ = nullptr, *e_ = nullptr;
    std::size_t columns_ = 1, d_k_ = 0, tokens_ = 0, segments_ = 1;
    std::array<std::size_t, max_segments + 1> starts_{};
    T *from_start_ = nullptr, *to_end_ = nullptr;  // (tokens, columns)
    T* in_segment_ = nullptr;  // (tokens, d_k): after the segment's first token up to token i
    T* between_ = nullptr;     // (tokens, chunk_tokens)
};

}  // namespace attn
