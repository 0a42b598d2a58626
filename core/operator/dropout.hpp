// PyTorch's dropout on the attention weights, with either of its two streams.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/tensor.hpp"
#include "core/base/torch_random.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/operator/choices.hpp"

namespace attn {

/// The keep decisions of one dropout in the order of its draws, 64 to a word. An element is kept
/// where its uniform is below 1 - p.
class KeepBits {
public:
    /// 0 < p < 1. mt19937 draws one draw64 per element; mkl draws a single draw32, the seed of an
    /// MCG31 stream, at once. Every kernel's draws are the same.
    KeepBits(double p, DropoutStream stream, const TorchGenerator& generator,
             const kernels::Draws& draws = *kernels::supported().back()->draws);

    /// The next `count` decisions: bit i % 64 of bits[i / 64] is 1 where element i is kept; the
    /// unused bits of the last word are 0.
    void next(std::uint64_t* bits, std::size_t count);

    /// Skips `count` decisions: by steps if they are few, otherwise by a jump.
    void skip(std::uint64_t count);

    /// The generator after the draws so far.
    TorchGenerator generator() const;

private:
    static constexpr std::size_t block_decisions = kernels::draw_words / 2;

    void next_of_mkl(std::uint64_t* bits, std::size_t count);

    const kernels::Draws* draws_;
    TorchGenerator generator_;
    std::optional<Mcg31> mkl_;
    std::uint64_t limit_;  // an element is kept where its draw, as an integer, is below

    // For mt19937: a block of the generator's words, and their decisions once they are made.
    alignas(64) std::array<std::uint32_t, kernels::draw_words + kernels::draw_slack> words_{};
    std::array<std::uint64_t, block_decisions / 64 + 2> kept_{};
    bool decided_ = false;
    std::size_t passed_ = 0;  // of the block's decisions
};

/// Transposes 64 x 64 bits in place: bit c of word r becomes bit r of word c.
void transpose_bits(std::uint64_t block[64]);

/// The weights that one dropout runs over, in the order of its draws: (outer, inner, rows,
/// columns), row-major. Rows outside [first_row, first_row + kept_rows) are drawn but not stored.
struct DropoutExtent {
    std::size_t outer, inner, rows, columns;
    std::size_t first_row, kept_rows;
};

/// The keep mask times 1/(1-p) in T: (outer, inner, kept_rows, columns), by KeepBits. p = 0 gives
/// ones and p = 1 zeros, and neither draws anything.
template <class T>
Tensor4<T> dropout_mask(double p, DropoutStream stream, const DropoutExtent& extent,
                        TorchGenerator& generator);

/// The dropout of one question's weights (batch, heads, q_len, kv_len).
struct Dropout {
    double p = 0;
    DropoutStream stream = DropoutStream::mt19937;
    bool head_by_head = false;                  ///< each head draws separately, one after the other
    std::size_t q_len = 0;                      ///< rows that are drawn, even if fewer are computed
    std::optional<TorchGenerator> generator{};  ///< where the draws begin; set if p is not 0
};

/// The scaled keep mask of rows [first_query, first_query + rows): `shape` is (batch, heads, rows,
/// kv_len).
template <class T>
Tensor4<T> dropout_mask(const Dropout& dropout, std::size_t first_query,
                        const std::array<std::size_t, 4>& shape);

}  // namespace attn
