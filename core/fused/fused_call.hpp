// One call of the operator by a fused kernel: its division into tiles, what they share, and the
// buffers of its workers. stream_rows.cpp runs it in pieces.
#pragma once

#include <deque>
#include <limits>

#include "core/fused/attend_fused.hpp"
#include "core/fused/kernel_formula.hpp"
#include "core/fused/tile_dropout.hpp"
#include "core/operator/merge.hpp"

namespace attn {

/// One worker's buffers, with an element for each of the tiles that it computes together.
template <class T>
struct FusedWorker {
    kernels::Tile<T> tiles[kernels::max_tiles_per_item];
    std::vector<kernels::Step<T>> steps[kernels::max_tiles_per_item];
    TilePlan plans[kernels::max_tiles_per_item];
    AlignedArray<T> scratch, weights, discarded;
    AlignedArray<T> pairs;         ///< of the keys and values of a head, or of a block of them
    AlignedArray<bool> is_paired;  ///< blocks of the head; empty: one block
    std::size_t paired_row = std::numeric_limits<std::size_t>::max();  ///< of that head
    TileKeep keep;
};

/// What a call is divided for.
struct FusedUse {
    bool in_order = false;  ///< tiles are in the order of the rows of (batch, heads, q_len)
    bool weights = false;   ///< they are written
    bool totals = false;    ///< tiles are filled for others: in order, of one head, without dropout
    bool backward = false;  ///< tiles are filled for others: in order of batch, head and query
};

template <class T>
class FusedCall {
public:
    /// Allocates what `run` needs; if tiles are filled for others nothing.
    FusedCall(const kernels::Kernel& kernel, const AttentionCall<T>& call,
              const FusedOutputs<T>& out, ThreadPool& threads, const FusedUse& use);

    /// Computes items [first, first + count) of the grid.
    void run(std::size_t first, std::size_t count);

    /// Completes the outputs after all items: rows in key splits, and heads chosen twice.
    void finish();

    const TileGrid& grid() const { return grid_; }

    /// Allocates what fill_tile needs.
    void reserve(FusedWorker<T>& worker) const;

    /// Fills the i-th tile of a worker, but for its outputs.
    void fill_tile(const TileRows& rows, std::size_t i, FusedWorker<T>& worker) const;

    /// The row of (batch, heads, q_len) that a tile's lane works on.
    std::size_t row_of(const TileRows& rows, std::size_t lane) const {
        return (rows.batch * grid_.sizes.heads + rows.head(lane)) * grid_.sizes.queries +
               rows.query(lane);
    }

private:
    static constexpr std::size_t not_chosen = std::numeric_limits<std::size_t>::max();

    std::size_t d_k() const { return call_.query.shape(3); }
    /// 0 if no context is requested: then values are not read.
    std::size_t d_v() const { return out_.context.data == nullptr ? 0 : call_.value.shape(3); }

    std::size_t tile_scratch() const {
        return grid_.by_rows ? kernels::row_scratch_size(d_k())
                             : kernels::scratch_size(entries_.lanes, d_k(), d_v() + has_pairs_);
    }

    void allocate(FusedWorker<T>& worker, bool weights) const;
    void allocate_splits();
    kernels::Magnitudes<T> magnitudes_of(const Tensor4<T>& numbers) const;
    /// What computes the tiles: pairs of bfloat16 if they can.
    void choose_attend(const kernels::Kernel& kernel, const FusedUse& use);

    void fill_lane(const TileRows& rows, std::size_t l, kernels::Tile<T>& tile,
                   std::vector<kernels::Step<T>>& steps) const;
    /// The start of the next item, to prefetch.
    void fill_next(std::size_t next, kernels::Tile<T>& tile) const;
    /// The first row of a tile's keys and values, in rows of (batch, heads, kv_len).
    std::size_t first_key_row(const TileRows& rows) const;

    void merge_splits();
    /// `next`: the item that this worker probably gets next.
    void attend_item(std::size_t item, std::size_t next, FusedWorker<T>& worker);
    void set_outputs(const TileRows& rows, kernels::Tile<T>& tile, T* discarded);
    void set_rows(const TileRows& rows, kernels::Tile<T>& tile, T* discarded);
    bool is_chosen(std::size_t head) const { return slots_.empty() || slots_[head] != not_chosen; }
    bool has_chosen(const TileRows& rows) const;
    bool is_needed(const TileRows& rows) const;
    void repeat_heads();
    void write_sums(const TileRows& rows, const kernels::Tile<T>& tile);
    void set_logsumexp(std::size_t row, const RowSum& sum);

    const kernels::Entries<T>& entries_;
    void (*attend_)(kernels::Tile<T>*, std::size_t) noexcept;
    const AttentionCall<T>& call_;
    const FusedOutputs<T>& out_;
    ThreadPool& threads_;
    TileGrid grid_;
    TileDropout dropout_;
    std::vector<StepUse> steps_;
    std::vector<Array<T>> biases_;
    std::deque<KernelFormula<T>> formulas_;
    double divisor_ = 1;              // a step's division of its input, which the scale includes
    bool folds_scale_ = false;        // queries are multiplied by the scale
    bool has_pairs_ = false;          // products are of pairs of bfloat16
    std::vector<std::size_t> slots_;  // of each head among the chosen ones, or not_chosen
    std::vector<FusedWorker<T>> workers_;
    // Of key splits: (rows, splits, d_v), (rows, splits) twice, and a merged row.
    AlignedArray<T> contexts_, shifts_, sums_;
    AlignedArray<double> merged_;
};

}  // namespace attn
