// The decisions of dropout in words of 64 bits, by a kernel's generators.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/base/torch_random.hpp"
#include "core/kernels/kernel.hpp"
#include "core/operator/choices.hpp"

namespace attn {

/// The keep decisions of one dropout in the order of its draws, 64 to a word. They are those
/// of `dropout_mask`.
class KeepBits {
public:
    /// 0 < p < 1. Every kernel's draws are the same.
    KeepBits(double p, DropoutStream stream, const TorchGenerator& generator,
             const kernels::Draws& draws);

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

}  // namespace attn
