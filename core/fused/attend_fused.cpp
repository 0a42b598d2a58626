// Divides the question into tiles of queries, determines the keys visible to each lane, and
// distributes the tiles over threads.
#include "core/fused/attend_fused.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>

#include "core/base/memory.hpp"
#include "core/fused/fused_sizes.hpp"
#include "core/fused/row_parts.hpp"
#include "core/fused/tile_dropout.hpp"
#include "core/fused/tile_plan.hpp"
#include "core/fused/worker_slots.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/operator/score_steps.hpp"
#include "core/operator/softmax.hpp"

namespace attn {
namespace {

template <class T>
class FusedRun {
public:
    /// `rows_in_order`: tiles are in the order of the rows of (batch, heads, q_len).
    FusedRun(const kernels::Kernel& kernel, const AttentionCall<T>& call,
             const FusedOutputs<T>& out, ThreadPool& workers, bool rows_in_order, bool weights)
        : entries_(kernels::entries_of<T>(kernel)), call_(call), out_(out), workers_(workers),
          all_(sizes_of(kernel, call, out, workers, rows_in_order, weights)), sizes_(all_.sizes),
          group_(all_.group()), by_rows_(all_.by_rows()), grid_(all_.grid()),
          dropout_(call.dropout, sizes_, call.first_query, *kernel.draws),
          steps_(steps_taken(call, call.biases.size())),
          states_(std::min(workers.threads(), grid_.items())) {
        if (!step_beyond_kernels(call).empty())
            throw std::logic_error("a step of the scores that fused kernels do not have");
        for (const Broadcast& bias : call.biases) biases_.emplace_back(bias.values());
        for (WorkerState& state : states_) allocate(state);
        if (grid_.parts > 1)
            parts_.reserve(sizes_.batch * sizes_.heads * sizes_.queries, grid_.parts, d_v());
        if (!is_dry_run()) folds_scale_ = !queries_leave_range();
    }

    void run() {
        if (is_dry_run()) return;
        run_items(0, grid_.items());
        if (grid_.parts > 1) join_parts();
    }

    void run_items(std::size_t first, std::size_t count) {
        if (is_dry_run()) return;
        const std::vector<std::size_t> ends = dropout_.runs(count, workers_.threads());
        WorkerSlots slots(workers_.threads());
        workers_.run(ends.size(), [&](std::size_t run, std::size_t of_pool) {
            const std::size_t worker = slots.of(of_pool);
            for (std::size_t item = run == 0 ? 0 : ends[run - 1]; item < ends[run]; ++item) {
                const bool is_last = item + 1 == ends[run];
                const std::size_t next = item + (is_last ? workers_.threads() : 1);
                attend_item(first + item, first + next, states_[worker]);
            }
        });
    }

    const TileGrid& grid() const { return grid_; }

    /// The row of (batch, heads, q_len) that a tile begins with.
    std::size_t first_row(std::size_t tile) const {
        const TilePlace place = grid_.place(tile);
        return row_of(place, 0);
    }

private:
    /// One worker's state, with an element for each of the tiles that it computes together.
    struct WorkerState {
        kernels::Tile<T> tiles[kernels::max_tiles_per_item];
        std::vector<kernels::Step<T>> steps[kernels::max_tiles_per_item];
        TilePlan plans[kernels::max_tiles_per_item];
        AlignedArray<T> scratch, weights, discarded;
        TileKeep keep;
    };

    void allocate(WorkerState& state) const {
        for (std::size_t i = 0; i < grid_.tiles_per_item; ++i)
            state.plans[i].reserve(call_.mask, keys_per_tile(), entries_.vector_lanes, by_rows_);
        state.scratch.reserve(all_.scratch() * grid_.tiles_per_item);
        state.weights.reserve(all_.weights_space());
        state.discarded.reserve(d_v());
        dropout_.reserve(state.keep);
    }

    std::size_t keys_per_tile() const { return grid_.parts == 1 ? sizes_.keys : part_keys; }

    static FusedSizes sizes_of(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                               const FusedOutputs<T>& out, const ThreadPool& workers,
                               bool rows_in_order, bool weights) {
        const kernels::Entries<T>& entries = kernels::entries_of<T>(kernel);
        const auto& query = call.query.shape();
        return {{query[0], query[1], query[2], call.key.shape(2)},
                call.key.shape(1),
                query[3],
                call.value.shape(3),
                sizeof(T),
                entries.lanes,
                entries.vector_lanes,
                workers.threads(),
                call.dropout.p != 0,
                call.dropout.head_by_head,
                rows_in_order,
                weights,
                out.scores != nullptr};
    }

    std::size_t d_k() const { return call_.query.shape(3); }
    std::size_t d_v() const { return call_.value.shape(3); }

    /// A step's division of its input is folded into the scale.
    double divisor() const {
        const ScoreRow any{call_, call_.scale, nullptr, sizes_.heads, d_k(), 0, 0, 0, 0};
        for (const StepUse& use : steps_)
            if (use.step.input_divisor != nullptr) return use.step.input_divisor(any);
        return 1;
    }

    /// Whether the factor of the queries, or a query's element times the factor, would overflow or
    /// be subnormal.
    bool queries_leave_range() const {
        const double factor = std::abs(call_.scale / divisor());
        const auto is_normal = [](double x) {
            return x >= static_cast<double>(std::numeric_limits<T>::min()) &&
                   x <= static_cast<double>(std::numeric_limits<T>::max());
        };
        if (!is_normal(factor)) return true;
        constexpr std::size_t piece = std::size_t{1}
                                      << 18;  // less does not justify waking other threads
        const std::size_t count = call_.query.size();
        std::atomic<bool> leave = false;
        workers_.run((count + piece - 1) / piece, [&](std::size_t i, std::size_t) {
            const kernels::Magnitudes<T> size = entries_.magnitudes(
                call_.query.data() + i * piece, std::min(piece, count - i * piece));
            const auto stays = [&](T x) { return is_normal(static_cast<double>(x) * factor); };
            if (!size.finite || (size.most != 0 && !(stays(size.least) && stays(size.most))))
                leave.store(true, std::memory_order_relaxed);
        });
        return leave;
    }

    /// `next`: the item that this worker probably gets next.
    void attend_item(std::size_t item, std::size_t next, WorkerState& state) {
        const TileRange range = grid_.tiles_of(item);
        for (std::size_t i = 0; i < range.count; ++i) fill_tile(range.first + i, i, state);
        fill_next(next, state.tiles[range.count - 1]);
        if (range.count == kernels::max_tiles_per_item)
            entries_.attend(state.tiles, range.count);
        else
            for (std::size_t i = 0; i < range.count; ++i) entries_.attend(state.tiles + i, 1);
        for (std::size_t i = 0; i < range.count; ++i)
            write_sums(grid_.place(range.first + i), state.tiles[i]);
    }

    void write_sums(const TilePlace& place, const kernels::Tile<T>& tile) {
        if (grid_.parts == 1) return write_logsumexp(place, tile);
        for (std::size_t l = 0; l < tile.lanes; ++l)
            parts_.set_sum(row_of(place, l), place.part, tile.shift[l], tile.sum[l]);
    }

    /// The start of the next item, to prefetch.
    void fill_next(std::size_t next, kernels::Tile<T>& tile) const {
        if (grid_.parts > 1 || next >= grid_.items()) return;
        const TilePlace place = grid_.place(grid_.tiles_of(next).first);
        if (place.queries == grid_.lanes)
            tile.next_query = call_.query.data() + row_of(place, 0) * d_k();
        tile.next_key = call_.key.data() + first_key_row(place) * d_k();
        tile.next_value = call_.value.data() + first_key_row(place) * d_v();
        tile.next_keys = std::min(sizes_.keys, kernels::block_keys);
    }

    /// The first row of a tile's keys and values, in rows of (batch, heads, kv_len).
    std::size_t first_key_row(const TilePlace& place) const {
        return (place.batch * call_.key.shape(1) + place.first_head / group_) * sizes_.keys;
    }

    /// Fills the i-th tile of a worker.
    void fill_tile(std::size_t number, std::size_t i, WorkerState& state) {
        const TilePlace place = grid_.place(number);
        kernels::Tile<T>& tile = state.tiles[i];
        tile.lanes = place.heads * place.queries;
        tile.kv_len = sizes_.keys;
        tile.d_k = d_k();
        tile.d_v = d_v();
        tile.key_stride = d_k();
        tile.value_stride = d_v();
        tile.key = call_.key.data() + first_key_row(place) * d_k();
        tile.value = call_.value.data() + first_key_row(place) * d_v();
        tile.next_query = tile.next_key = tile.next_value = nullptr;
        tile.next_keys = 0;
        tile.kept_value = dropout_.template kept_value<T>();
        tile.has_sink = !call_.sink.empty() && grid_.parts == 1;
        tile.by_rows = by_rows_;
        tile.query_factor = folds_scale_ ? static_cast<T>(call_.scale / divisor()) : T{1};
        tile.folded_steps = folds_scale_ ? 1 : 0;
        fill_keys(place, tile, state.plans[i]);
        tile.keep = dropout_.keep(place, state.plans[i].seen(), state.keep);

        std::vector<kernels::Step<T>>& steps = state.steps[i];
        steps.resize(steps_.size());
        tile.steps = steps.data();
        tile.step_count = steps.size();
        for (std::size_t step = 0; step < steps_.size(); ++step) {
            steps[step].kind = *steps_[step].step.kernel;
            steps[step].divisor = static_cast<T>(divisor());
        }
        tile.weights[0] = nullptr;
        tile.scores[0] = nullptr;
        for (std::size_t l = 0; l < kernels::max_lanes; ++l)
            fill_lane(place, std::min(l, tile.lanes - 1), l, tile, steps, state.discarded.data());

        tile.scratch = state.scratch.data() + all_.scratch() * i;
        tile.weights_buffer = state.weights.data();
    }

    void fill_keys(const TilePlace& place, kernels::Tile<T>& tile, TilePlan& plan) const {
        const std::size_t first = place.part * keys_per_tile();
        const KeyRange keys{first, std::min(first + keys_per_tile(), sizes_.keys)};
        plan.make(call_.mask, place, call_.first_query, keys, entries_.vector_lanes, by_rows_);
        tile.strips = plan.strips().data();
        tile.strip_count = plan.strips().size();
    }

    /// Lane l works on the tile's row `row`.
    void fill_lane(const TilePlace& place, std::size_t row, std::size_t l, kernels::Tile<T>& tile,
                   std::vector<kernels::Step<T>>& steps, T* discarded) {
        const std::size_t head = place.first_head + row / place.queries;
        const std::size_t query = place.first_query + row % place.queries;
        const std::size_t asked = call_.first_query + query;
        const std::size_t at = row_of(place, row);
        tile.query[l] = call_.query.data() + at * d_k();
        tile.position[l] = static_cast<std::ptrdiff_t>(asked) + call_.offset.of(place.batch);
        if (tile.has_sink) tile.sink[l] = static_cast<T>(sink_of(call_.sink, head));
        const ScoreRow scores{call_,        call_.scale, call_.biases.data(),
                              sizes_.heads, d_k(),       place.batch,
                              head,         asked,       tile.position[l]};
        for (std::size_t i = 0; i < steps_.size(); ++i) fill_step(steps_[i], scores, l, steps[i]);
        const std::size_t written = (at - out_.first_row) * sizes_.keys;
        if (out_.weights != nullptr) tile.weights[l] = out_.weights + written;
        if (out_.scores != nullptr && place.part == 0) tile.scores[l] = out_.scores + written;
        const HeadRows<T>& to = out_.context;
        if (grid_.parts > 1)
            tile.context[l] = parts_.context(at, place.part);
        else if (to.data != nullptr)
            tile.context[l] = to.data + place.batch * to.batch + head * to.head + query * to.row;
        else
            tile.context[l] = discarded;
    }

    void fill_step(const StepUse& use, const ScoreRow& scores, std::size_t l,
                   kernels::Step<T>& step) const {
        if (use.step.number != nullptr) step.number[l] = static_cast<T>(use.step.number(scores));
        if (step.kind != StepKind::bias) return;
        const Broadcast& bias = call_.biases[use.index];
        step.row[l] = biases_[use.index].data() + bias.row(scores.batch, scores.head, scores.query);
        step.key_step = bias.key_step();
    }

    /// The row of (batch, heads, q_len) that a tile's lane works on.
    std::size_t row_of(const TilePlace& place, std::size_t lane) const {
        const std::size_t head = place.first_head + lane / place.queries;
        const std::size_t query = place.first_query + lane % place.queries;
        return (place.batch * sizes_.heads + head) * sizes_.queries + query;
    }

    void write_logsumexp(const TilePlace& place, const kernels::Tile<T>& tile) {
        if (out_.logsumexp == nullptr) return;
        for (std::size_t l = 0; l < tile.lanes; ++l)
            out_.logsumexp[row_of(place, l)] = logsumexp_of<T>(static_cast<double>(tile.shift[l]),
                                                               static_cast<double>(tile.sum[l]));
    }

    void join_parts() {
        for (std::size_t b = 0; b < sizes_.batch; ++b)
            for (std::size_t h = 0; h < sizes_.heads; ++h)
                for (std::size_t q = 0; q < sizes_.queries; ++q) {
                    const std::size_t row = (b * sizes_.heads + h) * sizes_.queries + q;
                    const HeadRows<T>& to = out_.context;
                    const double sink =
                        call_.sink.empty() ? no_sink : static_cast<T>(sink_of(call_.sink, h));
                    const T logsumexp =
                        parts_.merge(row, sink, to.data + b * to.batch + h * to.head + q * to.row);
                    if (out_.logsumexp != nullptr) out_.logsumexp[row] = logsumexp;
                }
    }

    const kernels::Entries<T>& entries_;
    const AttentionCall<T>& call_;
    const FusedOutputs<T>& out_;
    ThreadPool& workers_;
    FusedSizes all_;
    TileSizes sizes_;
    std::size_t group_;
    bool by_rows_;
    TileGrid grid_;
    TileDropout dropout_;
    std::vector<StepUse> steps_;
    bool folds_scale_ = false;
    std::vector<Array<T>> biases_;
    std::vector<WorkerState> states_;
    KeySplits<T> parts_;
};

/// Weights or scores, a few tiles at a time.
template <class T>
class StreamedWeights {
public:
    StreamedWeights(const kernels::Kernel& kernel, std::shared_ptr<const AttentionCall<T>> call,
                    bool scores, ThreadPool& workers)
        : call_(std::move(call)), scores_(scores),
          run_(kernel, *call_, out_, workers, true, !scores) {
        constexpr std::size_t bytes = std::size_t{16} << 20;
        const std::size_t tile = run_.grid().lanes * call_->key.shape(2) * sizeof(T);
        at_once_ = std::max(2 * workers.threads(), bytes / tile);
    }

    static RowStream<T> stream(const kernels::Kernel& kernel,
                               std::shared_ptr<const AttentionCall<T>> call, bool scores,
                               ThreadPool& workers) {
        const auto& q = call->query.shape();
        const std::vector<std::size_t> shape{q[0], q[1], q[2], call->key.shape(2)};
        auto rows = std::make_shared<StreamedWeights>(kernel, std::move(call), scores, workers);
        return {shape, [rows] { return rows->next(); }};
    }

private:
    Array<T> next() {
        const std::size_t first = tile_, tiles = run_.grid().tiles();
        tile_ = std::min(first + at_once_, tiles);
        const std::size_t begin = row_before(first), end = row_before(tile_);
        Array<T> rows = Array<T>::from_shape({end - begin, call_->key.shape(2)});
        out_.first_row = begin;
        (scores_ ? out_.scores : out_.weights) = rows.data();
        run_.run_items(first, tile_ - first);
        return rows;
    }

    std::size_t row_before(std::size_t tile) const {
        const auto& shape = call_->query.shape();
        return tile < run_.grid().tiles() ? run_.first_row(tile) : shape[0] * shape[1] * shape[2];
    }

    std::shared_ptr<const AttentionCall<T>> call_;
    bool scores_;
    FusedOutputs<T> out_{};
    FusedRun<T> run_;
    std::size_t tile_ = 0, at_once_ = 1;
};

}  // namespace

template <class T>
RowStream<T> stream_weights(const kernels::Kernel& kernel,
                            std::shared_ptr<const AttentionCall<T>> call, bool scores,
                            ThreadPool& workers) {
    return StreamedWeights<T>::stream(kernel, std::move(call), scores, workers);
}

template <class T>
void attend_fused(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                  const FusedOutputs<T>& outputs, ThreadPool& workers) {
    FusedRun<T>(kernel, call, outputs, workers, false, outputs.weights != nullptr).run();
}

template void attend_fused(const kernels::Kernel&, const AttentionCall<float>&,
                           const FusedOutputs<float>&, ThreadPool&);
template void attend_fused(const kernels::Kernel&, const AttentionCall<double>&,
                           const FusedOutputs<double>&, ThreadPool&);

template RowStream<float> stream_weights(const kernels::Kernel&,
                                         std::shared_ptr<const AttentionCall<float>>, bool,
                                         ThreadPool&);
template RowStream<double> stream_weights(const kernels::Kernel&,
                                          std::shared_ptr<const AttentionCall<double>>, bool,
                                          ThreadPool&);

}  // namespace attn
