#include "core/fused/attend_fused.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "core/fused/fused_call.hpp"
#include "core/operator/merge.hpp"
#include "core/operator/softmax.hpp"

namespace attn {

template <class T>
void FusedCall<T>::run(std::size_t first, std::size_t count) {
    if (is_dry_run()) return;
    const std::vector<std::size_t> ends = dropout_.runs(count, threads_.threads());
    run_in_slots(threads_, ends.size(), [&](std::size_t run, std::size_t slot) {
        FusedWorker<T>& worker = workers_[slot];
        for (std::size_t item = run == 0 ? 0 : ends[run - 1]; item < ends[run]; ++item) {
            const bool is_last = item + 1 == ends[run];
            const std::size_t next = item + (is_last ? threads_.threads() : 1);
            attend_item(first + item, first + next, worker);
        }
    });
}

template <class T>
void FusedCall<T>::attend_item(std::size_t item, std::size_t next, FusedWorker<T>& worker) {
    const TileRange range = grid_.tiles_of(item);
    if (!is_needed(grid_.place(range.first))) return;
    for (std::size_t i = 0; i < range.count; ++i) {
        const TilePlace place = grid_.place(range.first + i);
        fill_tile(place, i, worker);
        set_outputs(place, worker.tiles[i], worker.discarded.data());
    }
    fill_next(next, worker.tiles[range.count - 1]);
    if (range.count == kernels::max_tiles_per_item)
        entries_.attend(worker.tiles, range.count);
    else
        for (std::size_t i = 0; i < range.count; ++i) entries_.attend(worker.tiles + i, 1);
    for (std::size_t i = 0; i < range.count; ++i)
        write_sums(grid_.place(range.first + i), worker.tiles[i]);
}

template <class T>
void FusedCall<T>::set_outputs(const TilePlace& place, kernels::Tile<T>& tile, T* discarded) {
    const HeadRows<T>& to = out_.context;
    set_rows(place, tile, discarded);
    for (std::size_t l = 0; l < tile.lanes; ++l) {
        const std::size_t row = row_of(place, l);
        if (grid_.splits > 1)
            tile.context[l] = contexts_.data() + (row * grid_.splits + place.split) * d_v();
        else
            tile.context[l] =
                to.data == nullptr ? discarded : to.at(place.batch, place.head(l), place.query(l));
    }
}

/// The rows of weights and scores. A tile of heads that are not chosen has none; the other heads of
/// a tile that has some write to `discarded`.
template <class T>
void FusedCall<T>::set_rows(const TilePlace& place, kernels::Tile<T>& tile, T* discarded) {
    tile.weights[0] = tile.scores[0] = nullptr;
    if (!has_chosen(place)) return;
    const auto row_in = [&](T* rows, std::size_t l) {
        if (!is_chosen(place.head(l))) return discarded;
        const std::size_t row =
            slots_.empty()
                ? row_of(place, l)
                : (place.batch * out_.heads->size() + slots_[place.head(l)]) * grid_.sizes.queries +
                      place.query(l);
        return rows + (row - out_.first_row) * grid_.sizes.keys;
    };
    for (std::size_t l = 0; l < tile.lanes; ++l) {
        if (out_.weights != nullptr) tile.weights[l] = row_in(out_.weights, l);
        if (out_.scores != nullptr && place.split == 0) tile.scores[l] = row_in(out_.scores, l);
    }
}

template <class T>
bool FusedCall<T>::has_chosen(const TilePlace& place) const {
    for (std::size_t h = 0; h < place.heads; ++h)
        if (is_chosen(place.first_head + h)) return true;
    return false;
}

/// Whether a tile, or the tiles of its item, which have its heads, write anything.
template <class T>
bool FusedCall<T>::is_needed(const TilePlace& place) const {
    return out_.context.data != nullptr || out_.logsumexp != nullptr ||
           out_.wide_logsumexp != nullptr || has_chosen(place);
}

/// A head that is chosen again is a copy.
template <class T>
void FusedCall<T>::repeat_heads() {
    if (slots_.empty() || is_dry_run()) return;
    const std::size_t matrix = grid_.sizes.queries * grid_.sizes.keys, heads = out_.heads->size();
    for (T* rows : {out_.weights, out_.scores})
        for (std::size_t b = 0; rows != nullptr && b < grid_.sizes.batch; ++b)
            for (std::size_t i = 0; i < heads; ++i)
                if (const std::size_t first = slots_[(*out_.heads)[i]]; first != i)
                    std::copy_n(rows + (b * heads + first) * matrix, matrix,
                                rows + (b * heads + i) * matrix);
}

template <class T>
void FusedCall<T>::finish() {
    merge_splits();
    repeat_heads();
}

template <class T>
void FusedCall<T>::write_sums(const TilePlace& place, const kernels::Tile<T>& tile) {
    for (std::size_t l = 0; l < tile.lanes; ++l) {
        const std::size_t row = row_of(place, l), split = row * grid_.splits + place.split;
        if (grid_.splits > 1) {
            shifts_.data()[split] = tile.shift[l];
            sums_.data()[split] = tile.sum[l];
        } else if (out_.logsumexp != nullptr || out_.wide_logsumexp != nullptr) {
            set_logsumexp(row,
                          {static_cast<double>(tile.shift[l]), static_cast<double>(tile.sum[l])});
        }
    }
}

template <class T>
void FusedCall<T>::set_logsumexp(std::size_t row, const RowSum& sum) {
    if (out_.logsumexp != nullptr) out_.logsumexp[row] = static_cast<T>(sum.logsumexp());
    if (out_.wide_logsumexp != nullptr) out_.wide_logsumexp[row] = sum.logsumexp_of_part();
}

template <class T>
void FusedCall<T>::merge_splits() {
    if (grid_.splits == 1 || is_dry_run()) return;
    const TileSizes& sizes = grid_.sizes;
    std::size_t row = 0;
    for (std::size_t b = 0; b < sizes.batch; ++b)
        for (std::size_t h = 0; h < sizes.heads; ++h)
            for (std::size_t q = 0; q < sizes.queries; ++q, ++row) {
                const std::size_t first = row * grid_.splits;
                const KeySplits<T> splits{contexts_.data() + first * d_v(),
                                          {shifts_.data() + first, grid_.splits},
                                          {sums_.data() + first, grid_.splits}};
                const double sink =
                    call_.sink.empty() ? no_sink : static_cast<T>(sink_of(call_.sink, h));
                set_logsumexp(row, merge(splits, sink, std::span(merged_.data(), d_v()),
                                         out_.context.at(b, h, q)));
            }
}

template <class T>
void attend_fused(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                  const FusedOutputs<T>& outputs, ThreadPool& threads) {
    FusedCall<T> fused(kernel, call, outputs, threads, {.weights = outputs.weights != nullptr});
    fused.run(0, fused.grid().items());
    fused.finish();
}

template void attend_fused(const kernels::Kernel&, const AttentionCall<float>&,
                           const FusedOutputs<float>&, ThreadPool&);
template void attend_fused(const kernels::Kernel&, const AttentionCall<double>&,
                           const FusedOutputs<double>&, ThreadPool&);
template void FusedCall<float>::run(std::size_t, std::size_t);
template void FusedCall<double>::run(std::size_t, std::size_t);

}  // namespace attn
