#include "core/model/hyper_block.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/model/attention_arrays.hpp"
#include "core/model/cost.hpp"
#include "core/model/hyper_connection.hpp"
#include "core/model/latent.hpp"
#include "core/model/project_heads.hpp"
#include "core/model/run_block.hpp"

namespace attn {
namespace {

/// x after the rows that the cache has at `place`; all of them are kept there.
template <class T>
Tensor3<T> with_past(BlockRun<T>& run, std::size_t place, Tensor3<T> x) {
    if (run.cache == nullptr) return x;
    std::vector<Tensor3<T>>& kept = run.cache->last_rows;
    if (kept.size() <= place) kept.resize(place + 1);
    const Tensor3<T>& past = kept[place];
    Tensor3<T> all = Tensor3<T>::from_shape(
        {1, (past.size() == 0 ? 0 : past.shape(1)) + x.shape(1), x.shape(2)});
    std::copy_n(past.data(), past.size(), all.data());
    std::copy_n(x.data(), x.size(), all.data() + past.size());
    kept[place] = all;
    return all;
}

/// The compressed keys of all tokens so far, (1, 1, keys, width).
template <class T>
Tensor4<T> compress(BlockRun<T>& run, const Compressor& part, const Tensor3<T>& x,
                    std::size_t place) {
    const Tensor3<T> values = with_past(run, place, apply(run.compute, part.value, x)),
                     gates = with_past(run, place + 1, apply(run.compute, part.gate, x));
    const std::size_t keys = values.shape(1) / part.rate, columns = values.shape(2), d = part.width;
    Tensor3<T> out = Tensor3<T>::from_shape({1, keys, d});
    for (std::size_t key = 0; key < keys; ++key)
        for (std::size_t i = 0; i < d; ++i) {
            double largest = -std::numeric_limits<double>::infinity(), sum = 0, total = 0;
            std::vector<std::pair<double, double>> terms;  // gate, value
            const auto add = [&](std::size_t window, std::size_t column) {
                for (std::size_t j = 0; j < part.rate; ++j) {
                    const std::size_t at = (window * part.rate + j) * columns + column;
                    terms.emplace_back(static_cast<double>(gates.data()[at]) +
                                           part.gate_bias[j * columns + column],
                                       static_cast<double>(values.data()[at]));
                    largest = std::max(largest, terms.back().first);
                }
            };
            if (part.overlaps && key > 0) add(key - 1, i);
            add(key, part.overlaps ? d + i : i);
            for (const auto& [gate, value] : terms) {
                const double weight = std::exp(gate - largest);
                sum += weight;
                total += weight * value;
            }
            out.data()[key * d + i] = static_cast<T>(total / sum);
        }
    Tensor4<T> heads = split_columns(normed(run.compute, part.norm, std::move(out)), 1);
    std::vector<double> positions;
    for (std::size_t key = 0; key < keys; ++key)
        positions.push_back(static_cast<double>(key * part.rate));
    rotate(part.rotation, positions, heads);
    return heads;
}

/// The keys that a compressor makes of `tokens` tokens, and their cost.
PartCost cost_of(const Compressor& part, const PartSize& size) {
    PartCost cost = cost_of(part.value, size.tokens, size);
    const PartCost gate = cost_of(part.gate, size.tokens, size);
    cost.flops += gate.flops;
    cost.bytes += gate.bytes;
    return cost;
}

PartCost cost_of(const CompressedAttention& own, PartSize size) {
    const std::size_t tokens = size.tokens,
                      compressed = own.compressor ? tokens / own.compressor->rate : 0;
    const double e = size.element();
    const PartCost down = cost_of(own.query_down, tokens, size),
                   key = cost_of(own.key, tokens, size), out = cost_of(own.out, tokens, size);
    PartSize operator_size = size;
    operator_size.past += compressed;
    operator_size.is_masked = true;
    PartCost cost = cost_of(own.part, operator_size);
    cost.flops += down.flops + key.flops + out.flops;
    cost.bytes += down.bytes + key.bytes + out.bytes;
    for (const LinearMap& map : own.groups) cost.flops += cost_of(map, tokens, size).flops;
    if (own.compressor) {
        const PartCost keys = cost_of(*own.compressor, size);
        cost.flops += keys.flops;
        cost.bytes = std::max(cost.bytes, keys.bytes);
    }
    if (own.indexer) {
        const PartCost query = cost_of(own.indexer->query, tokens, size),
                       keys = cost_of(own.indexer->keys, size);
        cost.flops += query.flops + keys.flops + cost_of(own.indexer->weights, tokens, size).flops +
                      2 * static_cast<double>(tokens) * static_cast<double>(compressed) *
                          static_cast<double>(own.indexer->heads * own.indexer->keys.width);
        cost.bytes = std::max(cost.bytes, 2 * query.bytes + keys.bytes);
    }
    cost.bytes += static_cast<double>(tokens) * static_cast<double>(compressed) * sizeof(double) +
                  static_cast<double>(tokens * own.part.heads * own.part.d_k) * e;
    return cost;
}

class HyperMixer final : public OtherMixer {
public:
    explicit HyperMixer(HyperBlock part) : part_(std::move(part)) {}

    Tensor3<float> run(BlockRun<float>& run, const Tensor3<float>& x) const override {
        return mix(run, x);
    }
    Tensor3<double> run(BlockRun<double>& run, const Tensor3<double>& x) const override {
        return mix(run, x);
    }

    PartCost cost(const PartSize& size) const override {
        const std::size_t streams = part_.attention_streams.streams;
        const double row = static_cast<double>(size.tokens * size.width) * size.element();
        PartCost cost = cost_of(part_.attention, size);
        cost.bytes += 3 * row;
        PartCost ffn = cost_of(part_.ffn, size);
        ffn.bytes += (2 + static_cast<double>(streams)) * row;
        add_step(cost, ffn);
        for (const HyperConnection* const at : {&part_.attention_streams, &part_.ffn_streams})
            cost.flops += cost_of(at->map, size.tokens, size).flops;
        cost.bytes += row * static_cast<double>(streams);  // the streams after a part
        return cost;
    }
    std::size_t streams() const override { return part_.attention_streams.streams; }

private:
    template <class T>
    Tensor3<T> mix(BlockRun<T>& run, const Tensor3<T>& x) const {
        const Compute& compute = run.compute;
        if (x.shape(0) != part_.attention_streams.streams)
            throw SettingError(ErrorKind::usage, "hidden_states",
                               "layer " + std::to_string(run.block.layer) + " has " +
                                   std::to_string(part_.attention_streams.streams) +
                                   " streams; expected token ids");
        Connected<T> at = connect(compute, part_.attention_streams, x);
        Tensor3<T> y = attend(run, normed(compute, part_.attention_norm, std::move(at.input)));
        const Tensor3<T> streams = expand(at, x, y);
        at = connect(compute, part_.ffn_streams, streams);
        const Tensor3<T> input = normed(compute, part_.ffn_norm, std::move(at.input));
        y = part_.experts_of_ids == nullptr ? run_experts(run, part_.ffn, input, input)
                                            : run_experts(run, by_ids(run), input, input);
        return expand(at, streams, y);
    }

    /// Experts by the table of token ids.
    template <class T>
    Experts by_ids(const BlockRun<T>& run) const {
        if (run.token_ids.empty())
            throw SettingError(ErrorKind::usage, "hidden_states",
                               "layer " + std::to_string(run.block.layer) +
                                   " chooses experts by token id; expected token ids");
        Experts experts = part_.ffn;
        const std::size_t chosen = experts.chosen;
        std::vector<double> row(chosen);
        for (const std::uint64_t id : run.token_ids) {
            if (id >= part_.experts_of_ids->shape()[0])
                throw SettingError(ErrorKind::input, "token_ids",
                                   std::to_string(id) +
                                       " is not a row of the table of experts; expected at most " +
                                       std::to_string(part_.experts_of_ids->shape()[0] - 1));
            part_.experts_of_ids->read(static_cast<std::size_t>(id) * chosen, chosen, row.data());
            std::vector<std::size_t>& own = experts.by_token.emplace_back();
            for (const double expert : row) {
                if (!(expert >= 0) || expert >= static_cast<double>(experts.count))
                    throw SettingError(
                        ErrorKind::input, "tid2eid",
                        "names an expert that the layer does not have; expected 0 to " +
                            std::to_string(experts.count - 1));
                own.push_back(static_cast<std::size_t>(expert));
            }
        }
        return experts;
    }

    template <class T>
    Tensor3<T> attend(BlockRun<T>& run, const Tensor3<T>& x) const {
        const Compute& compute = run.compute;
        const CompressedAttention& own = part_.attention;
        const std::size_t heads = own.part.heads, tokens = x.shape(1), d = own.part.d_k;
        const Tensor3<T> latent =
            normed(compute, own.query_norm, apply(compute, own.query_down, x));
        Tensor3<T> projected = apply(compute, own.part.query, latent);
        norm_rows(compute, own.head_norm, d, std::span<T>(projected.data(), projected.size()));
        Tensor4<T> query = split_columns(projected, heads);
        Tensor4<T> key =
            split_columns(normed(compute, own.key_norm, apply(compute, own.key, x)), 1);
        record_heads(run, "unrotated_queries", query, heads, "q_len");
        record_heads(run, "unrotated_keys", key, heads, "kv_len");
        rotate(own.rotation, run.positions, query);
        rotate(own.rotation, run.positions, key);
        if (run.cache != nullptr) {
            append(run.cache->attention.key, key);
            key = run.cache->attention.key;
        }
        const std::size_t plain = key.shape(2);
        Array<double> seen;  // compressed keys by query
        if (own.compressor) {
            const Tensor4<T> compressed = compress(run, *own.compressor, x, 0);
            seen = seen_by(run, *own.compressor, compressed.shape(2));
            if (own.indexer) choose(run, *own.indexer, latent, x, seen);
            if (compressed.shape(2) != 0) append(key, compressed);
        }
        const std::size_t all = key.shape(2);
        Array<double> allowed = Array<double>::from_shape({tokens, all});
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t k = 0; k < all; ++k) {
                const std::size_t at = run.past + t;
                const bool is_near = k <= at && at - k < own.window &&
                                     (run.valid_keys.empty() || k >= plain || run.valid_keys[k]);
                allowed(t, k) = k < plain ? (is_near ? 1 : 0) : seen(t, k - plain);
            }
        Tensor4<T> value = key;
        Tensor4<T> context = split_columns(attend_heads(run, own.part, std::move(query),
                                                        std::move(key), std::move(value), allowed),
                                           heads);
        rotate(own.rotation, run.positions, context, true);
        return project_out(run, context);
    }

    /// 1 where all tokens of a compressed key are up to the query's.
    template <class T>
    Array<double> seen_by(const BlockRun<T>& run, const Compressor& part, std::size_t keys) const {
        Array<double> seen = Array<double>::from_shape({run.positions.size(), keys});
        for (std::size_t t = 0; t < run.positions.size(); ++t)
            for (std::size_t k = 0; k < keys; ++k)
                seen(t, k) =
                    static_cast<double>((k + 1) * part.rate) <= run.positions[t] + 1 ? 1 : 0;
        return seen;
    }

    /// Leaves in `seen` the keys that the indexer chooses.
    template <class T>
    void choose(BlockRun<T>& run, const CompressedIndexer& part, const Tensor3<T>& latent,
                const Tensor3<T>& x, Array<double>& seen) const {
        const Tensor4<T> keys = compress(run, part.keys, x, 2);
        Tensor4<T> query = split_columns(apply(run.compute, part.query, latent), part.heads);
        rotate(part.keys.rotation, run.positions, query);
        const Tensor3<T> weights = apply(run.compute, part.weights, x);
        const std::size_t tokens = x.shape(1), count = keys.shape(2), d = part.keys.width;
        const double scale = 1 / std::sqrt(static_cast<double>(d)),
                     of_heads = 1 / std::sqrt(static_cast<double>(part.heads));
        for (std::size_t t = 0; t < tokens; ++t) {
            std::vector<double> scores(count);
            for (std::size_t k = 0; k < count; ++k) {
                if (seen(t, k) == 0) {
                    scores[k] = -std::numeric_limits<double>::infinity();
                    continue;
                }
                seen(t, k) = 0;
                for (std::size_t h = 0; h < part.heads; ++h) {
                    double score = 0;
                    for (std::size_t i = 0; i < d; ++i)
                        score += static_cast<double>(query.data()[(h * tokens + t) * d + i]) *
                                 static_cast<double>(keys.data()[k * d + i]);
                    scores[k] += std::max(0.0, score) * scale * of_heads *
                                 static_cast<double>(weights.data()[t * part.heads + h]);
                }
            }
            for (const std::size_t k : largest(scores, part.chosen)) seen(t, k) = 1;
        }
    }

    /// Groups of heads by maps of their own, then all of them.
    template <class T>
    Tensor3<T> project_out(BlockRun<T>& run, const Tensor4<T>& context) const {
        const CompressedAttention& own = part_.attention;
        const std::size_t heads = context.shape(1), tokens = context.shape(2), d = context.shape(3),
                          groups = own.groups.size(), each = heads / groups,
                          rank = own.groups.front().d_out;
        Tensor3<T> narrow = Tensor3<T>::from_shape({1, tokens, groups * rank});
        for (std::size_t g = 0; g < groups; ++g) {
            Tensor3<T> part = Tensor3<T>::from_shape({1, tokens, each * d});
            for (std::size_t h = 0; h < each; ++h)
                for (std::size_t t = 0; t < tokens; ++t)
                    std::copy_n(context.data() + ((g * each + h) * tokens + t) * d, d,
                                part.data() + (t * each + h) * d);
            const Tensor3<T> y = apply(run.compute, own.groups[g], part);
            for (std::size_t t = 0; t < tokens; ++t)
                std::copy_n(y.data() + t * rank, rank, narrow.data() + (t * groups + g) * rank);
        }
        Tensor3<T> out = apply(run.compute, own.out, narrow);
        if (run.wanted.has("context_vectors"))
            run.record("context_vectors", Array<T>(Tensor3<T>(out), {tokens, out.shape(2)}),
                       {"q_len", "d_out"});
        return out;
    }

    HyperBlock part_;
};

}  // namespace

std::shared_ptr<const OtherMixer> make_hyper_block(HyperBlock part) {
    return std::make_shared<const HyperMixer>(std::move(part));
}

}  // namespace attn
