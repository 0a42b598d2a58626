// Rows of weights or scores by a fused kernel, a few tiles at a time.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/fused/fused_call.hpp"

namespace attn {
namespace {

template <class T>
class StreamedRows {
public:
    StreamedRows(const kernels::Kernel& kernel, std::shared_ptr<const AttentionCall<T>> call,
                 bool scores, ThreadPool& threads)
        : call_(std::move(call)), scores_(scores),
          fused_(kernel, *call_, out_, threads, true, !scores) {
        constexpr std::size_t bytes = std::size_t{16} << 20;
        const std::size_t tile = fused_.grid().lanes * keys() * sizeof(T);
        at_once_ = std::max(2 * threads.threads(), bytes / tile);
    }

    static RowStream<T> stream(const kernels::Kernel& kernel,
                               std::shared_ptr<const AttentionCall<T>> call, bool scores,
                               ThreadPool& threads) {
        const auto& q = call->query.shape();
        const std::vector<std::size_t> shape{q[0], q[1], q[2], call->key.shape(2)};
        auto rows = std::make_shared<StreamedRows>(kernel, std::move(call), scores, threads);
        return {shape, [rows] { return rows->next(); }};
    }

private:
    Array<T> next() {
        const std::size_t first = tile_, tiles = fused_.grid().tiles();
        tile_ = std::min(first + at_once_, tiles);
        out_.first_row = row_before(first);
        Array<T> rows = Array<T>::from_shape({row_before(tile_) - out_.first_row, keys()});
        (scores_ ? out_.scores : out_.weights) = rows.data();
        fused_.run(first, tile_ - first);
        return rows;
    }

    std::size_t keys() const { return call_->key.shape(2); }

    std::size_t row_before(std::size_t tile) const {
        const TileGrid& grid = fused_.grid();
        if (tile < grid.tiles()) return fused_.row_of(grid.place(tile), 0);
        return grid.sizes.batch * grid.sizes.heads * grid.sizes.queries;
    }

    std::shared_ptr<const AttentionCall<T>> call_;
    bool scores_;
    FusedOutputs<T> out_{};
    FusedCall<T> fused_;
    std::size_t tile_ = 0, at_once_ = 1;
};

}  // namespace

template <class T>
RowStream<T> stream_weights(const kernels::Kernel& kernel,
                            std::shared_ptr<const AttentionCall<T>> call, bool scores,
                            ThreadPool& threads) {
    return StreamedRows<T>::stream(kernel, std::move(call), scores, threads);
}

template RowStream<float> stream_weights(const kernels::Kernel&,
                                         std::shared_ptr<const AttentionCall<float>>, bool,
                                         ThreadPool&);
template RowStream<double> stream_weights(const kernels::Kernel&,
                                          std::shared_ptr<const AttentionCall<double>>, bool,
                                          ThreadPool&);

}  // namespace attn
