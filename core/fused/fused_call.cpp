#include "core/fused/fused_call.hpp"

#include <algorithm>
#include <cmath>

#include "core/kernels/dispatch.hpp"
#include "core/operator/score_steps.hpp"

namespace attn {
namespace {
const Dropout no_dropout;

/// Several if keys and values exceed the cache, or are converted to pairs block by block, and
/// enough items remain for all threads.
template <class T>
std::size_t choose_tiles_per_item(const TileGrid& grid, const AttentionCall<T>& call,
                                  std::size_t threads) {
    const std::size_t row_bytes = (call.key.shape(3) + call.value.shape(3)) * sizeof(T);
    const bool many = call.type == NumberType::bfloat16 ||
                      outgrow_cache(product_of_sizes(grid.sizes.keys, row_bytes));
    const bool enough = grid.tiles() >= kernels::max_tiles_per_item * 4 * threads;
    return grid.splits == 1 && many && enough ? kernels::max_tiles_per_item : 1;
}

template <class T>
TileGrid make_grid(std::size_t lanes, const AttentionCall<T>& call, const FusedOutputs<T>& out,
                   std::size_t threads, const FusedUse& use) {
    // Up to so many queries per key head do not fill a vector.
    constexpr std::size_t few_rows = 512, row_by_row = 4;
    const auto& query = call.query.shape();
    const TileSizes sizes{query[0], query[1], query[2], call.key.shape(2)};
    const std::size_t group = sizes.heads / call.key.shape(1);
    TileGrid grid;
    grid.sizes = sizes;
    grid.lanes = lanes;
    const bool for_others = use.totals || use.backward;
    grid.by_rows = group * sizes.queries <= row_by_row && !for_others;
    grid.head_by_head = call.dropout.head_by_head && !for_others;
    grid.in_order = use.in_order || for_others || call.dropout.p != 0;
    if (use.in_order || use.totals || call.dropout.p != 0) return grid;
    // Few queries of several heads that share keys fill one tile together.
    for (std::size_t heads = 2; heads <= std::min(group, lanes); ++heads)
        if (group % heads == 0 && heads * sizes.queries <= lanes) grid.heads_per_tile = heads;
    if (use.weights || use.backward) return grid;
    const bool few = sizes.batch * sizes.heads * sizes.queries <= few_rows;
    if (few && sizes.keys >= 2 * split_keys)
        grid.splits = (sizes.keys + split_keys - 1) / split_keys;
    if (out.scores == nullptr && !grid.by_rows)
        grid.tiles_per_item = choose_tiles_per_item(grid, call, threads);
    return grid;
}

}  // namespace

template <class T>
FusedCall<T>::FusedCall(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                        const FusedOutputs<T>& out, ThreadPool& threads, const FusedUse& use)
    : entries_(kernels::entries_of<T>(kernel)), attend_(entries_.attend), call_(call), out_(out),
      threads_(threads), grid_(make_grid(entries_.lanes, call, out, threads.threads(), use)),
      dropout_(use.totals ? no_dropout : call.dropout, grid_.sizes, call.first_query,
               kernel.table->draws),
      steps_(steps_taken(call, call.biases.size())),
      workers_(use.totals || use.backward ? 0 : std::min(threads.threads(), grid_.items())) {
    const ScoreRow any{call, call.scale, nullptr, grid_.sizes.heads, d_k(),         0,
                       0,    0,          0,       &call.sizes,       call.first_key};
    for (const auto& [key, formula] : call.score_formulas)
        formulas_.emplace_back(formula, call.sizes, call.first_key);
    for (const StepUse& taken : steps_)
        if (taken.step.input_divisor != nullptr) divisor_ = taken.step.input_divisor(any);
    for (const Broadcast& bias : call.biases) biases_.emplace_back(bias.values());
    if (out.heads != nullptr && !is_dry_run()) {
        slots_.assign(grid_.sizes.heads, not_chosen);
        for (std::size_t i = out.heads->size(); i-- > 0;) slots_[(*out.heads)[i]] = i;
    }
    choose_attend(kernel, use);
    for (FusedWorker<T>& worker : workers_) allocate(worker, use.weights);
    if (grid_.splits > 1) allocate_splits();
}

template <class T>
void FusedCall<T>::reserve(FusedWorker<T>& worker) const {
    for (std::size_t i = 0; i < grid_.tiles_per_item; ++i)
        worker.plans[i].reserve(call_.mask, grid_.keys_per_tile(), entries_.vector_lanes,
                                grid_.by_rows);
    dropout_.reserve(worker.keep);
}

template <class T>
void FusedCall<T>::allocate(FusedWorker<T>& worker, bool weights) const {
    reserve(worker);
    worker.scratch.reserve(tile_scratch() * grid_.tiles_per_item);
    const std::size_t lanes = entries_.lanes, keys = grid_.sizes.keys,
                      of_pairs = has_pairs_ ? lanes * kernels::block_keys / 2 : 0,
                      of_tile = kernels::weights_size(lanes, keys, weights) + of_pairs;
    worker.weights.reserve(grid_.by_rows ? kernels::block_keys : of_tile);
    if (has_pairs_) {
        const std::size_t blocks = (keys + kernels::block_keys - 1) / kernels::block_keys,
                          block = kernels::pairs_size(d_k(), d_v());
        const bool of_head = blocks * block * sizeof(T) <= std::size_t{16} << 20;
        worker.pairs.reserve((of_head ? blocks : 1) * block);
        if (of_head) worker.is_paired.reserve(blocks);
    }
    worker.discarded.reserve(out_.heads == nullptr ? d_v() : std::max(d_v(), grid_.sizes.keys));
}

template <class T>
void FusedCall<T>::allocate_splits() {
    const TileSizes& sizes = grid_.sizes;
    const std::size_t splits = sizes.batch * sizes.heads * sizes.queries * grid_.splits;
    contexts_.reserve(splits * d_v());
    shifts_.reserve(splits);
    sums_.reserve(splits);
    merged_.reserve(d_v());
}

template <class T>
kernels::Magnitudes<T> FusedCall<T>::magnitudes_of(const Tensor4<T>& numbers) const {
    constexpr std::size_t piece = std::size_t{1} << 18;  // less does not justify waking threads
    const std::size_t count = numbers.size(), pieces = (count + piece - 1) / piece;
    kernels::Magnitudes<T> all{std::numeric_limits<T>::infinity(), 0, true};
    std::vector<kernels::Magnitudes<T>> parts(pieces, all);
    threads_.run(pieces, [&](std::size_t i, std::size_t) {
        parts[i] =
            entries_.magnitudes(numbers.data() + i * piece, std::min(piece, count - i * piece));
    });
    for (const kernels::Magnitudes<T>& part : parts)
        all = {std::min(all.least, part.least), std::max(all.most, part.most),
               all.finite && part.finite};
    return all;
}

/// Queries have the scale if neither it nor their products with it overflow or are subnormal.
template <class T>
void FusedCall<T>::choose_attend(const kernels::Kernel& kernel, const FusedUse& use) {
    if (!call_.head_scales.empty()) return;
    const auto is_within = [](const kernels::Magnitudes<T>& numbers, double factor, double least,
                              double most) {
        const auto fits = [&](double x) { return x * factor >= least && x * factor <= most; };
        return numbers.finite && fits(1) &&
               (numbers.most == 0 || (fits(static_cast<double>(numbers.least)) &&
                                      fits(static_cast<double>(numbers.most))));
    };
    const kernels::Magnitudes<T> queries = magnitudes_of(call_.query);
    folds_scale_ = is_within(queries, std::abs(call_.scale / divisor_),
                             static_cast<double>(std::numeric_limits<T>::min()),
                             static_cast<double>(std::numeric_limits<T>::max()));
    if constexpr (std::is_same_v<T, float>) {
        constexpr std::size_t few_queries = 16;  // for which the keys would be converted
        const kernels::PairTable* const pairs = kernels::pairs_of(kernel);
        const std::size_t of_key = grid_.sizes.heads * grid_.sizes.queries / call_.key.shape(1);
        if (call_.type != NumberType::bfloat16 || pairs == nullptr || use.totals || use.backward ||
            !folds_scale_ || of_key < few_queries)
            return;
        // Products of two are normal.
        const auto fits = [&](const kernels::Magnitudes<T>& numbers) {
            return is_within(numbers, 1, 0x1p-60, 0x1p60);
        };
        has_pairs_ =
            fits(queries) && fits(magnitudes_of(call_.key)) && fits(magnitudes_of(call_.value));
        if (has_pairs_) attend_ = pairs->attend;
    }
}

template <class T>
std::size_t FusedCall<T>::first_key_row(const TileRows& rows) const {
    const std::size_t kv_heads = call_.key.shape(1), group = grid_.sizes.heads / kv_heads;
    return (rows.batch * kv_heads + rows.first_head / group) * grid_.sizes.keys;
}

template <class T>
void FusedCall<T>::fill_tile(const TileRows& rows, std::size_t i, FusedWorker<T>& worker) const {
    kernels::Tile<T>& tile = worker.tiles[i];
    tile.lanes = rows.heads * rows.queries;
    tile.kv_len = grid_.sizes.keys;
    tile.d_k = tile.key_stride = d_k();
    tile.d_v = d_v();
    tile.value_stride = call_.value.shape(3);
    tile.by_rows = grid_.by_rows;
    tile.key = call_.key.data() + first_key_row(rows) * d_k();
    tile.value = call_.value.data() + first_key_row(rows) * call_.value.shape(3);
    tile.next_query = tile.next_key = tile.next_value = nullptr;
    tile.next_keys = 0;
    tile.has_sink = !call_.sink.empty() && grid_.splits == 1;
    tile.query_factor = folds_scale_ ? static_cast<T>(call_.scale / divisor_) : T{1};
    tile.folded_steps = folds_scale_ ? 1 : 0;

    TilePlan& plan = worker.plans[i];
    plan.make(call_.mask, rows, call_.first_query, grid_.keys_of(rows), entries_.vector_lanes,
              grid_.by_rows, has_pairs_);
    tile.strips = plan.strips().data();
    tile.strip_count = plan.strips().size();
    tile.keep = dropout_.keep(rows, plan.seen(), worker.keep);
    tile.kept_value = dropout_.template kept_value<T>();

    std::vector<kernels::Step<T>>& steps = worker.steps[i];
    steps.resize(steps_.size());
    tile.steps = steps.data();
    tile.step_count = steps.size();
    for (std::size_t step = 0; step < steps_.size(); ++step) {
        steps[step].kind = steps_[step].step.kernel;
        steps[step].divisor = static_cast<T>(divisor_);
        if (steps[step].kind == StepKind::formula)
            steps[step].formula = &formulas_[steps_[step].index].formula();
        steps[step].batch = static_cast<T>(rows.batch);
        steps[step].is_signed = call_.alibi_distance == AlibiDistance::from_query;
    }
    for (std::size_t l = 0; l < kernels::max_lanes; ++l) fill_lane(rows, l, tile, steps);

    tile.scratch = worker.scratch.data() + tile_scratch() * i;
    tile.weights_buffer = worker.weights.data();
    tile.pairs = worker.pairs.data();
    tile.is_paired = worker.is_paired.data();
    if (std::exchange(worker.paired_row, first_key_row(rows)) != first_key_row(rows))
        std::fill(worker.is_paired.begin(), worker.is_paired.end(), false);
}

/// Lanes past the last row repeat it.
template <class T>
void FusedCall<T>::fill_lane(const TileRows& rows, std::size_t l, kernels::Tile<T>& tile,
                             std::vector<kernels::Step<T>>& steps) const {
    const std::size_t row = std::min(l, tile.lanes - 1), head = rows.head(row);
    const std::size_t query = call_.first_query + rows.query(row);
    tile.query[l] = call_.query.data() + row_of(rows, row) * d_k();
    tile.position[l] = static_cast<std::ptrdiff_t>(query) + call_.offset.of(rows.batch);
    if (tile.has_sink) tile.sink[l] = static_cast<T>(sink_of(call_.sink, head));
    const ScoreRow scores{
        call_, call_.scale, call_.biases.data(), grid_.sizes.heads, d_k(),          rows.batch,
        head,  query,       tile.position[l],    &call_.sizes,      call_.first_key};
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        const auto& [step, index] = steps_[i];
        if (step.number != nullptr) steps[i].number[l] = static_cast<T>(step.number(scores));
        if (steps[i].kind == StepKind::formula) steps[i].number[l] = static_cast<T>(head);
        if (steps[i].kind != StepKind::bias) continue;
        const Broadcast& bias = call_.biases[index];
        steps[i].row[l] = biases_[index].data() + bias.row(rows.batch, head, query);
        steps[i].key_step = bias.key_step();
    }
}

template <class T>
void FusedCall<T>::fill_next(std::size_t next, kernels::Tile<T>& tile) const {
    if (grid_.splits > 1 || next >= grid_.items()) return;
    const TileRows rows = grid_.rows_of(grid_.tiles_of(next).first);
    if (rows.queries == grid_.lanes) tile.next_query = call_.query.data() + row_of(rows, 0) * d_k();
    tile.next_key = call_.key.data() + first_key_row(rows) * d_k();
    tile.next_value = call_.value.data() + first_key_row(rows) * call_.value.shape(3);
    tile.next_keys = std::min(grid_.sizes.keys, kernels::block_keys);
}

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
    if (!is_needed(grid_.rows_of(range.first))) return;
    for (std::size_t i = 0; i < range.count; ++i) {
        const TileRows rows = grid_.rows_of(range.first + i);
        fill_tile(rows, i, worker);
        set_outputs(rows, worker.tiles[i], worker.discarded.data());
    }
    fill_next(next, worker.tiles[range.count - 1]);
    if (range.count == kernels::max_tiles_per_item)
        attend_(worker.tiles, range.count);
    else
        for (std::size_t i = 0; i < range.count; ++i) attend_(worker.tiles + i, 1);
    for (std::size_t i = 0; i < range.count; ++i)
        write_sums(grid_.rows_of(range.first + i), worker.tiles[i]);
}

template <class T>
void FusedCall<T>::set_outputs(const TileRows& rows, kernels::Tile<T>& tile, T* discarded) {
    const HeadRows<T>& to = out_.context;
    set_rows(rows, tile, discarded);
    for (std::size_t l = 0; l < tile.lanes; ++l) {
        const std::size_t row = row_of(rows, l);
        if (grid_.splits > 1)
            tile.context[l] = contexts_.data() + (row * grid_.splits + rows.split) * d_v();
        else
            tile.context[l] =
                to.data == nullptr ? discarded : to.at(rows.batch, rows.head(l), rows.query(l));
    }
}

/// The rows of weights and scores. A tile of heads that are not chosen has none; the other heads of
/// a tile that has some write to `discarded`.
template <class T>
void FusedCall<T>::set_rows(const TileRows& rows, kernels::Tile<T>& tile, T* discarded) {
    tile.weights[0] = tile.scores[0] = nullptr;
    if (!has_chosen(rows)) return;
    const auto row_in = [&](T* out, std::size_t l) {
        if (!is_chosen(rows.head(l))) return discarded;
        const std::size_t row =
            slots_.empty()
                ? row_of(rows, l)
                : (rows.batch * out_.heads->size() + slots_[rows.head(l)]) * grid_.sizes.queries +
                      rows.query(l);
        return out + (row - out_.first_row) * grid_.sizes.keys;
    };
    for (std::size_t l = 0; l < tile.lanes; ++l) {
        if (out_.weights != nullptr) tile.weights[l] = row_in(out_.weights, l);
        if (out_.scores != nullptr && rows.split == 0) tile.scores[l] = row_in(out_.scores, l);
    }
}

template <class T>
bool FusedCall<T>::has_chosen(const TileRows& rows) const {
    for (std::size_t h = 0; h < rows.heads; ++h)
        if (is_chosen(rows.first_head + h)) return true;
    return false;
}

/// Whether a tile, or the tiles of its item, which have its heads, write anything.
template <class T>
bool FusedCall<T>::is_needed(const TileRows& rows) const {
    return out_.context.data != nullptr || out_.logsumexp != nullptr ||
           out_.wide_logsumexp != nullptr || has_chosen(rows);
}

/// A head that is chosen again is a copy.
template <class T>
void FusedCall<T>::repeat_heads() {
    if (slots_.empty()) return;
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
void FusedCall<T>::write_sums(const TileRows& rows, const kernels::Tile<T>& tile) {
    for (std::size_t l = 0; l < tile.lanes; ++l) {
        const std::size_t row = row_of(rows, l), split = row * grid_.splits + rows.split;
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
    if (grid_.splits == 1) return;
    const TileSizes& sizes = grid_.sizes;
    for_each_index(sizes.batch * sizes.heads * sizes.queries, [&](std::size_t row) {
        const std::size_t first = row * grid_.splits, matrix = row / sizes.queries,
                          h = matrix % sizes.heads;
        const KeySplits<T> splits{contexts_.data() + first * d_v(),
                                  {shifts_.data() + first, grid_.splits},
                                  {sums_.data() + first, grid_.splits}};
        const double sink = call_.sink.empty() ? no_sink : static_cast<T>(sink_of(call_.sink, h));
        set_logsumexp(row, merge(splits, sink, std::span(merged_.data(), d_v()),
                                 out_.context.at(matrix / sizes.heads, h, row % sizes.queries)));
    });
}

template <class T>
void attend_fused(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                  const FusedOutputs<T>& outputs, ThreadPool& threads) {
    FusedCall<T> fused(kernel, call, outputs, threads, {.weights = outputs.weights != nullptr});
    fused.run(0, fused.grid().items());
    fused.finish();
}

template class FusedCall<float>;
template class FusedCall<double>;
template void attend_fused(const kernels::Kernel&, const AttentionCall<float>&,
                           const FusedOutputs<float>&, ThreadPool&);
template void attend_fused(const kernels::Kernel&, const AttentionCall<double>&,
                           const FusedOutputs<double>&, ThreadPool&);
}  // namespace attn
