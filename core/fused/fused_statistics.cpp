
#include <algorithm>

#include "core/fused/fused_call.hpp"
#include "core/kernels/dispatch.hpp"

namespace attn {
namespace {

/// Sums by key are added in this many parts at most, whatever the number of threads: each has some
/// of a head's tiles, in order.
constexpr std::size_t max_parts = 32;

template <class T>
class FusedStatistics {
    static constexpr std::size_t max_tiles = kernels::max_tiles_per_item;

    /// The current tiles are the first of each array.
    struct Worker {
        FusedWorker<T> fused;
        kernels::RowTotals<T> totals;  // of one tile
        TopKeys top;
        std::size_t lanes = 0;
        kernels::KeyTotals<T> by_key[max_tiles];
        RowSums rows[max_tiles][kernels::max_lanes];
    };

public:
    FusedStatistics(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                    StatisticArrays<T>& arrays, ThreadPool& threads)
        : entries_(kernels::entries_of<T>(kernel)), call_(call), arrays_(arrays), threads_(threads),
          fused_(kernel, call, no_outputs_, threads, {.totals = true}), grid_(fused_.grid()),
          matrices_(grid_.sizes.batch * arrays.heads()),
          tiles_(grid_.tiles() / (grid_.sizes.batch * grid_.sizes.heads)),
          parts_(arrays.per_key() ? std::min(tiles_, (max_parts + matrices_ - 1) / matrices_)
                                  : tiles_),
          tiles_at_once_(choose_tiles_at_once()),
          workers_(std::min(threads.threads(), matrices_ * parts_)) {
        for (Worker& worker : workers_) allocate(worker);
        if (!arrays.per_key()) return;
        mass_.reserve(matrices_ * parts_ * arrays.keys());
        most_.reserve(matrices_ * parts_ * arrays.keys());
    }

    void run() {
        run_in_slots(threads_, matrices_ * parts_,
                     [&](std::size_t item, std::size_t slot) { run_part(item, workers_[slot]); });
        if (arrays_.per_key())
            for_each_index(matrices_, [&](std::size_t matrix) { merge_parts(matrix); });
    }

private:
    /// Several where a head's keys exceed the cache and every part has as many tiles. Independent
    /// of the number of threads, which must not change the order of sums.
    std::size_t choose_tiles_at_once() const {
        const double key_bytes = static_cast<double>(grid_.sizes.keys * call_.query.shape(3)) *
                                 static_cast<double>(sizeof(T));
        const bool many = arrays_.per_key() && outgrow_cache(key_bytes);
        return many && tiles_ >= parts_ * max_tiles ? max_tiles : 1;
    }

    void allocate(Worker& worker) const {
        const std::size_t scratch = kernels::scratch_size(entries_.lanes, call_.query.shape(3), 0);
        worker.fused.scratch.reserve(scratch * tiles_at_once_);
        worker.fused.weights.reserve(kernels::block_keys * entries_.lanes);
        worker.top.reserve(kernels::max_lanes, arrays_.top());
        for (std::size_t i = 0; i < tiles_at_once_; ++i) {
            worker.fused.plans[i].reserve(call_.mask, grid_.sizes.keys, entries_.vector_lanes,
                                          false);
            kernels::Tile<T>& tile = worker.fused.tiles[i];
            std::fill_n(tile.context, kernels::max_lanes, nullptr);  // rows of 0 elements
            tile.weights[0] = tile.scores[0] = nullptr;
        }
    }

    /// Every parts_-th group of a head's tiles.
    void run_part(std::size_t item, Worker& worker) {
        const std::size_t matrix = item / parts_, keys = arrays_.keys();
        if (arrays_.per_key()) {
            double* const mass = mass_.data() + item * keys;
            T* const most = most_.data() + item * keys;
            std::fill_n(mass, keys, 0.0);
            std::fill_n(most, keys, T{0});
            for (kernels::KeyTotals<T>& totals : worker.by_key) {
                totals.sum = mass;
                totals.most = most;
            }
        }
        const std::size_t batch = matrix / arrays_.heads(),
                          head = arrays_.head(matrix % arrays_.heads());
        const std::size_t first = (batch * grid_.sizes.heads + head) * tiles_;
        const std::size_t step = parts_ * tiles_at_once_;
        for (std::size_t tile = item % parts_ * tiles_at_once_; tile < tiles_; tile += step) {
            if (tiles_ - tile >= tiles_at_once_)
                run_tiles(first + tile, tiles_at_once_, matrix, worker);
            else
                for (std::size_t i = tile; i < tiles_; ++i) run_tiles(first + i, 1, matrix, worker);
        }
    }

    /// `count`: 1 or kernels::max_tiles_per_item.
    void run_tiles(std::size_t first, std::size_t count, std::size_t matrix, Worker& worker) {
        kernels::Tile<T>* const tiles = worker.fused.tiles;
        for (std::size_t i = 0; i < count; ++i)
            fused_.fill_tile(grid_.rows_of(first + i), i, worker.fused);
        if (!arrays_.per_row()) sum_rows(count, worker);
        for (std::size_t i = 0; i < count; ++i) {
            const TileRows of_tile = grid_.rows_of(first + i);
            RowSums* const rows = worker.rows[i];
            if (arrays_.per_row()) total_rows(tiles[i], rows, worker);
            for (std::size_t l = 0; l < tiles[i].lanes; ++l) {
                if ((tiles[i].out_of_range >> l & 1) != 0) rows[l] = plain_row(tiles[i], l, worker);
                rows[l].finish(tiles[i].has_sink ? std::optional<double>(tiles[i].sink[l])
                                                 : std::nullopt);
                arrays_.set_row(matrix * grid_.sizes.queries + of_tile.query(l), rows[l],
                                worker.top.sorted(l));
            }
        }
        if (arrays_.per_key()) total_keys(count, worker);
    }

    void total_rows(kernels::Tile<T>& tile, RowSums* rows, Worker& worker) {
        worker.lanes = tile.lanes;
        for (std::size_t l = 0; l < tile.lanes; ++l) worker.top.clear(l);
        kernels::RowTotals<T>& totals = worker.totals;
        totals.wants_scores = arrays_.wants("entropy");
        totals.wants_distances = arrays_.wants("mean_distance");
        totals.offer = arrays_.top() == 0 ? nullptr : take_offer;
        totals.taker = &worker;
        std::fill_n(totals.threshold, kernels::max_lanes, -std::numeric_limits<T>::infinity());
        entries_.total_rows(tile, totals);
        tile.out_of_range = totals.out_of_range;
        for (std::size_t l = 0; l < tile.lanes; ++l)
            rows[l] = {static_cast<double>(totals.peak[l]), static_cast<double>(totals.sum[l]),
                       static_cast<double>(totals.score_sum[l]),
                       static_cast<double>(totals.distance_sum[l])};
    }

    /// The sums alone, for weights by key, relative to any number near the row's largest score.
    void sum_rows(std::size_t count, Worker& worker) {
        kernels::Tile<T>* const tiles = worker.fused.tiles;
        const bool has_sink = tiles->has_sink;  // of a head, so of all
        for (std::size_t i = 0; i < count; ++i) tiles[i].has_sink = false;
        entries_.attend(tiles, count);
        for (std::size_t i = 0; i < count; ++i) {
            tiles[i].has_sink = has_sink;
            for (std::size_t l = 0; l < tiles[i].lanes; ++l)
                worker.rows[i][l] = {static_cast<double>(tiles[i].shift[l]),
                                     static_cast<double>(tiles[i].sum[l])};
        }
    }

    static void take_offer(void* taker, const T* scores, const T* peaks, std::size_t lane,
                           std::size_t first_key, std::size_t keys) {
        Worker& worker = *static_cast<Worker*>(taker);
        kernels::RowTotals<T>& totals = worker.totals;
        const std::size_t end = std::min(lane + totals.vector_lanes, worker.lanes);
        for (std::size_t l = lane; l < end; ++l) {
            if (!(peaks[l - lane] > totals.threshold[l])) continue;
            for (std::size_t k = 0; k < keys; ++k) {
                const T score = scores[k * totals.stride + l - lane];
                if (!(score > totals.threshold[l])) continue;
                worker.top.offer(l, static_cast<double>(score), first_key + k);
                totals.threshold[l] = static_cast<T>(worker.top.threshold(l));
            }
        }
    }

    template <class Visit>
    void visit_row(kernels::Tile<T>& tile, std::size_t lane, Visit visit) const {
        entries_.visit_row(tile, lane, &visit, [](void* visitor, std::size_t key, T score) {
            (*static_cast<Visit*>(visitor))(key, score);
        });
    }

    /// The sums of a row that leaves T's range, and its largest scores.
    RowSums plain_row(kernels::Tile<T>& tile, std::size_t lane, Worker& worker) const {
        RowSums row;
        worker.top.clear(lane);
        visit_row(tile, lane, [&](std::size_t key, T score) {
            row.raise_peak(static_cast<double>(score));
            if (worker.top.capacity() != 0) worker.top.offer(lane, static_cast<double>(score), key);
        });
        visit_row(tile, lane, [&](std::size_t key, T score) {
            row.add(static_cast<double>(score),
                    static_cast<std::int64_t>(key) - tile.position[lane]);
        });
        return row;
    }

    void total_keys(std::size_t count, Worker& worker) const {
        kernels::Tile<T>* const tiles = worker.fused.tiles;
        for (std::size_t i = 0; i < count; ++i)
            set_weights(tiles[i], worker.rows[i], worker.by_key[i]);
        entries_.total_keys(tiles, worker.by_key, count);
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t l = 0; l < tiles[i].lanes; ++l)
                if ((tiles[i].out_of_range >> l & 1) != 0)
                    add_plain_row(tiles[i], l, worker.rows[i][l], worker.by_key[i]);
    }

    /// The weights of the lanes in range.
    static void set_weights(const kernels::Tile<T>& tile, const RowSums* rows,
                            kernels::KeyTotals<T>& totals) {
        totals.lanes = 0;
        for (std::size_t l = 0; l < kernels::max_lanes; ++l) {
            const bool counts = l < tile.lanes && (tile.out_of_range >> l & 1) == 0;
            if (counts) totals.lanes |= std::uint64_t{1} << l;
            totals.shift[l] = counts ? static_cast<T>(rows[l].peak) : T{0};
            totals.factor[l] =
                counts ? static_cast<T>(rows[l].factor() / kernels::weight_unit) : T{0};
        }
    }

    void add_plain_row(kernels::Tile<T>& tile, std::size_t lane, const RowSums& row,
                       const kernels::KeyTotals<T>& totals) const {
        visit_row(tile, lane, [&](std::size_t key, T score) {
            const auto weight = static_cast<T>(row.weight_of(static_cast<double>(score)));
            totals.sum[key] += static_cast<double>(weight);
            raise_to(totals.most[key], weight);
        });
    }

    void merge_parts(std::size_t matrix) {
        const std::size_t keys = arrays_.keys();
        double* const mass = mass_.data() + matrix * parts_ * keys;
        T* const most = most_.data() + matrix * parts_ * keys;
        for (std::size_t i = keys; i < parts_ * keys; ++i) {
            mass[i % keys] += mass[i];
            raise_to(most[i % keys], most[i]);
        }
        arrays_.set_keys(matrix, {mass, keys}, {most, keys});
    }

    const kernels::Entries<T>& entries_;
    const AttentionCall<T>& call_;
    StatisticArrays<T>& arrays_;
    ThreadPool& threads_;
    const FusedOutputs<T> no_outputs_{};
    FusedCall<T> fused_;
    const TileGrid& grid_;
    std::size_t matrices_, tiles_, parts_;  // heads of all batch entries, and of each
    std::size_t tiles_at_once_;
    std::vector<Worker> workers_;
    AlignedArray<double> mass_;
    AlignedArray<T> most_;
};

}  // namespace

template <class T>
void fused_statistics(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                      StatisticArrays<T>& arrays, ThreadPool& threads) {
    FusedStatistics<T>(kernel, call, arrays, threads).run();
}

template void fused_statistics(const kernels::Kernel&, const AttentionCall<float>&,
                               StatisticArrays<float>&, ThreadPool&);
template void fused_statistics(const kernels::Kernel&, const AttentionCall<double>&,
                               StatisticArrays<double>&, ThreadPool&);

}  // namespace attn
