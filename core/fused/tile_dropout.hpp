// The decisions of dropout: in words of 64 bits, by a kernel's generators, and for tiles of
// queries.
#pragma once

#include <array>
#include <vector>

#include "core/fused/tile_plan.hpp"
#include "core/operator/cuda_dropout.hpp"

namespace attn {

/// The keep decisions of one dropout in the order of its draws, 64 to a word. They are those
/// of `dropout_mask`.
class KeepBits {
public:
    /// 0 < p < 1. Every kernel's draws are the same. The stream mkl takes its seed from the
    /// generator; mt19937 continues it, and leaves it as it is.
    KeepBits(double p, DropoutStream stream, TorchGenerator& generator,
             const kernels::Draws& draws);

    /// The next `count` decisions: bit i % 64 of bits[i / 64] is 1 where element i is kept; the
    /// unused bits of the last word are 0.
    void next(std::uint64_t* bits, std::size_t count);

    /// Skips `count` decisions: by steps if they are few, otherwise by a jump.
    void skip(std::uint64_t count);

private:
    static constexpr std::size_t block_decisions = kernels::draw_words / 2;

    void next_of_mkl(std::uint64_t* bits, std::size_t count);

    const kernels::Draws* draws_;
    std::optional<Mcg31> mkl_;
    std::uint64_t limit_;  // an element is kept where its draw, as an integer, is below

    // For mt19937: a block of the generator's words, and their decisions once they are made.
    alignas(64) std::array<std::uint32_t, kernels::draw_words + kernels::draw_slack> words_{};
    std::array<std::uint64_t, block_decisions / 64 + 2> kept_{};
    bool decided_ = false;
    std::size_t passed_ = 0;  // of the block's decisions
};

/// The decisions of a GPU's dropout for `count` elements of a row from element k on, as
/// KeepBits::next() gives them.
void cuda_keep_bits(const CudaDropout& dropout, const kernels::Draws& draws,
                    const CudaDropout::At& at, std::uint64_t* bits, std::size_t count);

/// Transposes 64 x 64 bits in place: bit c of word r becomes bit r of word c.
void transpose_bits(std::uint64_t block[64]);

// Dropout for tiles of queries: the same decisions as for the whole question, tile by tile.

/// One worker's buffer for the decisions of a tile, and the stream that it draws them from.
struct TileKeep {
    AlignedArray<std::uint64_t> rows, keys;
    std::optional<KeepBits> stream;
    std::size_t first_head = 0;   ///< where each head has a stream
    std::uint64_t decisions = 0;  ///< drawn or skipped in the stream
};

/// Decisions are drawn for the current tile only, so memory is O(kv_len) per worker. Each worker
/// draws from its own stream, which skips the tiles of others.
class TileDropout {
public:
    /// `first_query` is the number of drawn rows of each matrix before the first that is computed.
    TileDropout(const Dropout& dropout, const TileSizes& sizes, std::size_t first_query,
                const kernels::Draws& draws);

    /// Reserves the buffer that `keep` needs.
    void reserve(TileKeep& buffer) const;

    /// The ends of runs of `tiles` that are best given to one worker each, in order, since skipping
    /// the draws of others takes time. Long runs come first, so that all workers end together.
    std::vector<std::size_t> runs(std::size_t tiles, std::size_t threads) const;

    /// Bit l of word k: lane l keeps key k, one of `seen`. Null if nothing is dropped.
    const std::uint64_t* keep(const TileRows& rows, KeyRange seen, TileKeep& buffer) const;

    /// The factor of kept weights: PyTorch divides ones by 1 - p in T.
    template <class T>
    double kept_value() const {
        if (!drops() || dropout_.p == 1) return 1;
        return static_cast<double>(T{1} / static_cast<T>(1 - dropout_.p));
    }

private:
    bool drops() const { return dropout_.p != 0; }
    bool drops_all() const { return streams_.empty() && !cuda_; }
    std::size_t words() const { return (sizes_.keys + 63) / 64; }
    std::uint64_t drawn_rows_before(const TileRows& rows) const;
    /// Of mt19937 and mkl: the rows of the tile, from key `first` on, a multiple of 64.
    void draw_in_order(const TileRows& rows, std::size_t first, std::size_t count,
                       TileKeep& buffer) const;

    const Dropout& dropout_;
    TileSizes sizes_;
    std::size_t first_query_;
    std::vector<KeepBits> streams_;    // one; mkl head by head: one per head
    std::optional<CudaDropout> cuda_;  // instead of these
    const kernels::Draws& draws_;
};

}  // namespace attn
