// The operator by a fused kernel: cuts the question into tiles of queries, says for each which keys
// its lanes see, and shares the tiles out among threads. See fused.hpp.
#include "core/fused.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/kernels/dispatch.hpp"
#include "core/memory.hpp"
#include "core/modifiers.hpp"
#include "core/tile_dropout.hpp"
#include "core/tile_plan.hpp"

namespace attn {
namespace {

/// Keys of one part, where rows are too few to keep all threads busy: then parts of rows are
/// computed apart and joined. A multiple of a block.
constexpr std::size_t part_keys = 32 * kernels::block_keys;
constexpr std::size_t few_rows = 512;

/// Queries of one key head up to which rows are computed one by one: fewer do not fill a vector.
constexpr std::size_t row_by_row = 4;

template <class T>
class FusedRun {
public:
    FusedRun(const kernels::Kernel& kernel, const AttentionCall<T>& call,
             const FusedOutputs<T>& out, Workers& workers)
        : entries_(kernels::entries_of<T>(kernel)), call_(call), out_(out),
          workers_(workers), sizes_{call.query.shape(0), call.query.shape(1), call.query.shape(2),
                                    call.key.shape(2)},
          group_(sizes_.heads / call.key.shape(1)), by_rows_(group_ * sizes_.queries <= row_by_row),
          grid_(make_grid()), dropout_(call.dropout, sizes_, call.first_query),
          biases_(call.biases.size()), desks_(workers.threads()) {
        for (std::size_t i = 0; i < biases_.size(); ++i)
            biases_[i].assign(call.biases[i].values().begin(), call.biases[i].values().end());
        for (Desk& desk : desks_) dropout_.reserve(desk.keep);
    }

    void run() {
        if (grid_.parts > 1) {
            const std::size_t rows = sizes_.batch * sizes_.heads * sizes_.queries * grid_.parts;
            part_contexts_.resize(rows * d_v());
            part_exponents_.resize(rows);
            part_sums_.resize(rows);
        }
        workers_.run(grid_.tiles(), [&](std::size_t item, std::size_t worker) {
            attend_tile(grid_.place(item), item, desks_[worker]);
        });
        if (grid_.parts > 1) join_parts();
    }

private:
    /// What one worker works with.
    struct Desk {
        kernels::Tile<T> tile;
        AlignedArray<T> scratch;
        std::vector<kernels::Bias<T>> biases;
        TilePlan plan;
        TileKeep keep;
    };

    std::size_t d_k() const { return call_.query.shape(3); }
    std::size_t d_v() const { return call_.value.shape(3); }

    TileGrid make_grid() const {
        TileGrid grid;
        grid.sizes = sizes_;
        grid.lanes = entries_.lanes;
        const bool drops = call_.dropout.p != 0;
        // Few queries of several heads that share keys fill one tile together.
        if (!drops)
            for (std::size_t heads = 2; heads <= group_; ++heads)
                if (group_ % heads == 0 && heads * sizes_.queries <= grid.lanes)
                    grid.heads_per_tile = heads;
        const bool few = sizes_.batch * sizes_.heads * sizes_.queries <= few_rows;
        if (few && !drops && out_.weights == nullptr && sizes_.keys >= 2 * part_keys)
            grid.parts = (sizes_.keys + part_keys - 1) / part_keys;
        grid.head_by_head = call_.dropout.head_by_head;
        grid.in_order = drops;
        return grid;
    }

    void attend_tile(const TilePlace& place, std::size_t item, Desk& desk) {
        kernels::Tile<T>& tile = desk.tile;
        tile.keep = dropout_.keep(item, place, desk.keep);
        tile.kept_value = dropout_.template kept_value<T>();
        describe(place, desk);
        const KeyRange keys = grid_.parts == 1
                                  ? KeyRange{0, sizes_.keys}
                                  : KeyRange{place.part * part_keys,
                                             std::min((place.part + 1) * part_keys, sizes_.keys)};
        desk.plan.make(call_.mask, place, call_.first_query, keys, entries_.vector_lanes);
        tile.strips = desk.plan.strips().data();
        tile.strip_count = desk.plan.strips().size();
        entries_.attend(tile);
        if (grid_.parts == 1)
            write_logsumexp(place, tile);
        else
            for (std::size_t l = 0; l < tile.lanes; ++l) {
                const std::size_t row = part_row(place, l);
                part_exponents_[row] = tile.exponent[l];
                part_sums_[row] = tile.sum[l];
            }
    }

    void describe(const TilePlace& place, Desk& desk) {
        kernels::Tile<T>& tile = desk.tile;
        tile.lanes = place.heads * place.queries;
        tile.kv_len = sizes_.keys;
        tile.d_k = d_k();
        tile.d_v = d_v();
        tile.key_stride = d_k();
        tile.value_stride = d_v();
        const std::size_t kv_head = place.batch * call_.key.shape(1) + place.first_head / group_;
        tile.key = call_.key.data() + kv_head * sizes_.keys * d_k();
        tile.value = call_.value.data() + kv_head * sizes_.keys * d_v();
        tile.scale = call_.scale;
        tile.softcap = call_.softcap;
        tile.alibi = call_.alibi;
        tile.has_sink = !call_.sink.empty() && grid_.parts == 1;
        tile.partial = grid_.parts > 1;
        tile.by_rows = by_rows_;
        desk.biases.resize(biases_.size());
        tile.biases = desk.biases.data();
        tile.bias_count = desk.biases.size();
        tile.weights[0] = nullptr;
        tile.scores[0] = nullptr;
        for (std::size_t l = 0; l < kernels::most_lanes; ++l)
            describe_lane(place, std::min(l, tile.lanes - 1), l, desk);
        const std::size_t scratch = kernels::scratch_size(entries_.lanes, d_k(), d_v(), sizes_.keys,
                                                          out_.weights != nullptr);
        desk.scratch.reserve(scratch);
        tile.scratch = desk.scratch.data();
    }

    /// Lane l works on the tile's row `row`.
    void describe_lane(const TilePlace& place, std::size_t row, std::size_t l, Desk& desk) {
        kernels::Tile<T>& tile = desk.tile;
        const std::size_t head = place.first_head + row / place.queries;
        const std::size_t query = place.first_query + row % place.queries;
        const std::size_t asked = call_.first_query + query;
        const std::size_t at = (place.batch * sizes_.heads + head) * sizes_.queries + query;
        tile.query[l] = call_.query.data() + at * d_k();
        tile.position[l] = static_cast<std::ptrdiff_t>(asked) + call_.offset;
        if (call_.alibi) tile.slope[l] = static_cast<T>(alibi_slope(head, sizes_.heads));
        if (tile.has_sink) tile.sink[l] = static_cast<T>(call_.sink[head]);
        for (std::size_t i = 0; i < biases_.size(); ++i) {
            const Broadcast& bias = call_.biases[i];
            desk.biases[i].row[l] = biases_[i].data() + bias.row(place.batch, head, asked);
            desk.biases[i].key_step = bias.key_step();
        }
        if (out_.weights != nullptr) tile.weights[l] = out_.weights + at * sizes_.keys;
        if (out_.scores != nullptr && place.part == 0)
            tile.scores[l] = out_.scores + at * sizes_.keys;
        const HeadRows<T>& to = out_.context;
        tile.context[l] = grid_.parts == 1
                              ? to.data + place.batch * to.batch + head * to.head + query * to.row
                              : part_contexts_.data() + part_row(place, row) * d_v();
    }

    /// The row of a tile's lane among the rows of all parts.
    std::size_t part_row(const TilePlace& place, std::size_t lane) const {
        const std::size_t head = place.first_head + lane / place.queries;
        const std::size_t query = place.first_query + lane % place.queries;
        return ((place.batch * sizes_.heads + head) * sizes_.queries + query) * grid_.parts +
               place.part;
    }

    static T logsumexp_of(double exponent, double sum) {
        constexpr double ln2 = 0.6931471805599453;
        if (sum == 0) return -std::numeric_limits<T>::infinity();
        return static_cast<T>((exponent + std::log2(sum)) * ln2);
    }

    void write_logsumexp(const TilePlace& place, const kernels::Tile<T>& tile) {
        if (out_.logsumexp == nullptr) return;
        for (std::size_t l = 0; l < tile.lanes; ++l)
            out_.logsumexp[part_row(place, l)] = logsumexp_of(static_cast<double>(tile.exponent[l]),
                                                              static_cast<double>(tile.sum[l]));
    }

    /// Parts of a row as one: each was scaled by its own power of two.
    void join_parts() {
        std::vector<double> context(d_v());
        for (std::size_t b = 0; b < sizes_.batch; ++b)
            for (std::size_t h = 0; h < sizes_.heads; ++h)
                for (std::size_t q = 0; q < sizes_.queries; ++q) {
                    const std::size_t row = (b * sizes_.heads + h) * sizes_.queries + q;
                    const HeadRows<T>& to = out_.context;
                    join_row(row, h, context, to.data + b * to.batch + h * to.head + q * to.row);
                }
    }

    void join_row(std::size_t row, std::size_t head, std::vector<double>& context, T* to) {
        const T* exponents = part_exponents_.data() + row * grid_.parts;
        const T* sums = part_sums_.data() + row * grid_.parts;
        const T* contexts = part_contexts_.data() + row * grid_.parts * d_v();
        double exponent = -std::numeric_limits<double>::infinity();
        for (std::size_t part = 0; part < grid_.parts; ++part)
            if (sums[part] != 0)
                exponent = std::max(exponent, static_cast<double>(exponents[part]));
        double sum = 0;
        std::fill(context.begin(), context.end(), 0.0);
        for (std::size_t part = 0; part < grid_.parts; ++part) {
            if (sums[part] == 0) continue;
            const double factor = std::exp2(static_cast<double>(exponents[part]) - exponent);
            sum += factor * static_cast<double>(sums[part]);
            for (std::size_t c = 0; c < d_v(); ++c)
                context[c] += factor * static_cast<double>(contexts[part * d_v() + c]);
        }
        if (!call_.sink.empty() && sum != 0)
            sum += std::exp2(call_.sink[head] * 1.4426950408889634 - exponent);
        for (std::size_t c = 0; c < d_v(); ++c)
            to[c] = static_cast<T>(sum == 0 ? 0 : context[c] / sum);
        if (out_.logsumexp != nullptr) out_.logsumexp[row] = logsumexp_of(exponent, sum);
    }

    const kernels::Entries<T>& entries_;
    const AttentionCall<T>& call_;
    const FusedOutputs<T>& out_;
    Workers& workers_;
    TileSizes sizes_;
    std::size_t group_;
    bool by_rows_;
    TileGrid grid_;
    TileDropout dropout_;
    std::vector<std::vector<T>> biases_;
    std::vector<Desk> desks_;
    std::vector<T> part_contexts_, part_exponents_,
        part_sums_;  // (batch, heads, q_len, parts, ...)
};

}  // namespace

template <class T>
void attend_fused(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                  const FusedOutputs<T>& outputs, Workers& workers) {
    FusedRun<T>(kernel, call, outputs, workers).run();
}

template void attend_fused(const kernels::Kernel&, const AttentionCall<float>&,
                           const FusedOutputs<float>&, Workers&);
template void attend_fused(const kernels::Kernel&, const AttentionCall<double>&,
                           const FusedOutputs<double>&, Workers&);

}  // namespace attn
