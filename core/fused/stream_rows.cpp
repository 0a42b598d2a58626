// Rows of weights or scores by a fused kernel, a few tiles at a time.
#include <algorithm>
#include <utility>

#include "core/fused/fused_call.hpp"

namespace attn {

template <class T>
class StreamedRows {
public:
    StreamedRows(const kernels::Kernel& kernel, std::shared_ptr<const AttentionCall<T>> call,
                 bool scores, const std::vector<std::size_t>* heads, ThreadPool& threads)
        : call_(std::move(call)), scores_(scores),
          heads_(heads == nullptr ? std::vector<std::size_t>{} : *heads),
          fused_(kernel, *call_, out_, threads, {.in_order = true, .weights = !scores}) {
        constexpr std::size_t bytes = std::size_t{16} << 20;
        const std::size_t tile = fused_.grid().lanes * keys() * sizeof(T);
        at_once_ = std::max(2 * threads.threads(), bytes / tile);
    }

    /// The next rows of a stream.
    Array<T> next() {
        const TileRange range = next_tiles();
        tile_ += range.count;
        out_.first_row = row_before(range.first);
        const std::size_t count = row_before(range.first + range.count) - out_.first_row;
        Array<T> rows = Array<T>::from_shape({count, keys()});
        (scores_ ? out_.scores : out_.weights) = rows.data();
        fused_.run(range.first, range.count);
        return rows;
    }

private:
    /// Without chosen heads in the order of the grid, else at most the rest of a head.
    TileRange next_tiles() const {
        const TileGrid& grid = fused_.grid();
        const std::size_t all = grid.tiles(), heads = grid.sizes.heads;
        if (heads_.empty()) return {tile_, std::min(at_once_, all - tile_)};
        const std::size_t of_head = all / (grid.sizes.batch * heads), entry = tile_ / of_head;
        if (entry == grid.sizes.batch * heads_.size()) return {0, 0};
        const std::size_t batch = entry / heads_.size(), head = heads_[entry % heads_.size()],
                          done = tile_ % of_head;
        return {(batch * heads + head) * of_head + done, std::min(at_once_, of_head - done)};
    }

    std::size_t keys() const { return call_->key.shape(2); }

    std::size_t row_before(std::size_t tile) const {
        const TileGrid& grid = fused_.grid();
        if (tile < grid.tiles()) return fused_.row_of(grid.rows_of(tile), 0);
        return grid.sizes.batch * grid.sizes.heads * grid.sizes.queries;
    }

    std::shared_ptr<const AttentionCall<T>> call_;
    bool scores_;
    std::vector<std::size_t> heads_;  // chosen ones; empty: all
    FusedOutputs<T> out_{};
    FusedCall<T> fused_;
    std::size_t tile_ = 0, at_once_ = 1;  // tiles read so far, and at a time
};

template <class T>
RowStream<T> stream_weights(const kernels::Kernel& kernel,
                            std::shared_ptr<const AttentionCall<T>> call, bool scores,
                            const std::vector<std::size_t>* heads, ThreadPool& threads) {
    const auto& q = call->query.shape();
    const std::vector<std::size_t> shape{q[0], heads == nullptr ? q[1] : heads->size(), q[2],
                                         call->key.shape(2)};
    const auto rows =
        std::make_shared<StreamedRows<T>>(kernel, std::move(call), scores, heads, threads);
    return {shape, [rows] { return rows->next(); }};
}

template RowStream<float> stream_weights(const kernels::Kernel&,
                                         std::shared_ptr<const AttentionCall<float>>, bool,
                                         const std::vector<std::size_t>*, ThreadPool&);
template RowStream<double> stream_weights(const kernels::Kernel&,
                                          std::shared_ptr<const AttentionCall<double>>, bool,
                                          const std::vector<std::size_t>*, ThreadPool&);

}  // namespace attn
