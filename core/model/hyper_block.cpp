// DeepSeek V4's block: hyper-connected streams, and attention to compressed keys.
#include <cmath>
#include <limits>

#include "core/base/error.hpp"
#include "core/model/run_block.hpp"
#include "core/model/stages.hpp"

namespace attn {
namespace {

constexpr double masked = -std::numeric_limits<double>::infinity();

/// What a connection computes of the streams of each token.
struct Connected {
    States input;
    std::vector<double> post, mix;  ///< (tokens, streams), (tokens, streams, streams)
};

/// The connection's map of all streams of a token next to each other, normed without a weight.
States mapped(const Compute& compute, const HyperConnection& part, const States& x) {
    NormSpec norm;
    norm.eps = part.norm_eps;
    return apply(compute, part.map, normed(compute, norm, merged(x)));
}

/// sum_s weights[t, s] x[s, t].
States weighted_sum(const States& x, const std::vector<double>& weights) {
    const std::size_t streams = x.depth(), width = x.columns(), count = x.rows() * width;
    States out(x.dtype(), 1, x.rows(), width);
    numbers_of(out, x)([&]<class T>(T* to, const T* from) {
        for (std::size_t i = 0; i < count; ++i) {
            double sum = 0;
            for (std::size_t s = 0; s < streams; ++s)
                sum += weights[i / width * streams + s] * static_cast<double>(from[s * count + i]);
            to[i] = static_cast<T>(sum);
        }
    });
    return out;
}

/// Divides rows or columns of (n, n) by their sums.
void normalise(std::vector<double>& m, std::size_t n, double eps, bool rows) {
    for (std::size_t a = 0; a < n; ++a) {
        double sum = eps;
        for (std::size_t b = 0; b < n; ++b) sum += rows ? m[a * n + b] : m[b * n + a];
        for (std::size_t b = 0; b < n; ++b) (rows ? m[a * n + b] : m[b * n + a]) /= sum;
    }
}

Connected connect(const Compute& compute, const HyperConnection& part, const States& x) {
    const std::size_t n = part.streams, columns = 2 * n + n * n;
    const States f = mapped(compute, part, x);
    Connected out;
    std::vector<double> pre;
    for_each_index(x.rows(), [&](std::size_t t) {
        const auto at = [&](std::size_t i, std::size_t scale) {
            return f.at(t * columns + i) * part.scale[scale] + part.base[i];
        };
        for (std::size_t i = 0; i < n; ++i) pre.push_back(sigmoid(at(i, 0)) + part.eps);
        for (std::size_t i = 0; i < n; ++i) out.post.push_back(2 * sigmoid(at(n + i, 1)));
        std::vector<double> mix(n * n);
        for (std::size_t row = 0; row < n; ++row) {
            double largest = masked, sum = 0;
            for (std::size_t i = 0; i < n; ++i)
                largest = std::max(largest, mix[row * n + i] = at(2 * n + row * n + i, 2));
            for (std::size_t i = 0; i < n; ++i)
                sum += mix[row * n + i] = std::exp(mix[row * n + i] - largest);
            for (std::size_t i = 0; i < n; ++i)
                mix[row * n + i] = mix[row * n + i] / sum + part.eps;
        }
        normalise(mix, n, part.eps, false);
        for (std::size_t i = 1; i < part.iterations; ++i) {
            normalise(mix, n, part.eps, true);
            normalise(mix, n, part.eps, false);
        }
        out.mix.insert(out.mix.end(), mix.begin(), mix.end());
    });
    out.input = weighted_sum(x, pre);
    return out;
}

/// Stream j becomes post_j y + sum_i mix[i, j] x_i.
States expand(const Connected& from, const States& x, const States& y) {
    const std::size_t n = x.depth(), width = x.columns(), count = x.rows() * width;
    States out(x.dtype(), n, x.rows(), width);
    numbers_of(out, x, y)([&]<class T>(T* to, const T* streams, const T* own) {
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t k = 0; k < count; ++k) {
                const std::size_t t = k / width;
                double sum = from.post[t * n + j] * static_cast<double>(own[k]);
                for (std::size_t i = 0; i < n; ++i)
                    sum +=
                        from.mix[(t * n + i) * n + j] * static_cast<double>(streams[i * count + k]);
                *to++ = static_cast<T>(sum);
            }
    });
    return out;
}

/// x after the rows that the cache has at `index`; all of them are kept there.
States with_past(BlockRun& run, std::size_t index, States x) {
    if (run.cache == nullptr) return x;
    std::vector<States>& kept = run.cache->last_rows;
    if (kept.size() <= index) kept.resize(index + 1);
    return kept[index] = joined(1, kept[index], x);
}

/// The compressed keys of all tokens so far, (1, keys, width).
States compress(BlockRun& run, const Compressor& part, const States& x, std::size_t index) {
    const States values = with_past(run, index, apply(run.compute, part.value, x)),
                 gates = with_past(run, index + 1, apply(run.compute, part.gate, x));
    const std::size_t keys = values.rows() / part.rate, columns = values.columns(), d = part.width;
    States out(x.dtype(), 1, keys, d);
    const auto compressed = [&](std::size_t key, std::size_t i) {
        double largest = masked, sum = 0, total = 0;
        std::vector<std::pair<double, double>> terms;  // gate, value
        const auto add = [&](std::size_t window, std::size_t column) {
            for (std::size_t j = 0; j < part.rate; ++j) {
                const std::size_t at = (window * part.rate + j) * columns + column;
                terms.emplace_back(gates.at(at) + part.gate_bias[j * columns + column],
                                   values.at(at));
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
        return total / sum;
    };
    map(out, [&](double, std::size_t i) { return compressed(i / d, i % d); });
    out = normed(run.compute, part.norm, std::move(out));
    std::vector<double> positions;
    for (std::size_t key = 0; key < keys; ++key)
        positions.push_back(static_cast<double>(key * part.rate));
    rotate(part.rotation, positions, out);
    return out;
}

/// 1 where all tokens of a compressed key are up to the query's.
Array<double> seen_by(const BlockRun& run, const Compressor& part, std::size_t keys) {
    Array<double> seen = Array<double>::from_shape({run.positions.size(), keys});
    for_each_index(run.positions.size(), [&](std::size_t t) {
        for (std::size_t k = 0; k < keys; ++k)
            seen(t, k) = static_cast<double>((k + 1) * part.rate) <= run.positions[t] + 1 ? 1 : 0;
    });
    return seen;
}

/// Leaves in `seen` the keys that the indexer chooses.
void choose(BlockRun& run, const CompressedIndexer& part, const States& latent, const States& x,
            Array<double>& seen) {
    const States keys = compress(run, part.keys, x, 2);
    States query = split(apply(run.compute, part.query, latent), part.heads);
    rotate(part.keys.rotation, run.positions, query);
    const States weights = apply(run.compute, part.weights, x);
    const std::size_t tokens = x.rows(), count = keys.rows(), d = part.keys.width;
    run.compute.count(tokens, count * part.heads * d);
    const double scale = 1 / std::sqrt(static_cast<double>(d)),
                 of_heads = 1 / std::sqrt(static_cast<double>(part.heads));
    for_each_index(tokens, [&](std::size_t t) {
        std::vector<double> scores(count);
        for (std::size_t k = 0; k < count; ++k) {
            if (seen(t, k) == 0) {
                scores[k] = masked;
                continue;
            }
            seen(t, k) = 0;
            for (std::size_t h = 0; h < part.heads; ++h) {
                double score = 0;
                for (std::size_t i = 0; i < d; ++i)
                    score += query.at((h * tokens + t) * d + i) * keys.at(k * d + i);
                scores[k] +=
                    std::max(0.0, score) * scale * of_heads * weights.at(t * part.heads + h);
            }
        }
        for (const std::size_t k : indices_of_largest(scores, part.chosen)) seen(t, k) = 1;
    });
}

/// Groups of heads by maps of their own, then all of them.
States project_groups(BlockRun& run, const CompressedAttention& own, const States& context) {
    const std::size_t each = context.depth() / own.groups.size();
    States narrow;
    for (std::size_t g = 0; g < own.groups.size(); ++g)
        narrow =
            joined(2, narrow,
                   apply(run.compute, own.groups[g], merged(slice(context, 0, g * each, each))));
    States out = apply(run.compute, own.out, narrow);
    run.record("context_vectors", out, {"q_len", "d_out"});
    return out;
}

States attend(BlockRun& run, const CompressedAttention& own, const States& x) {
    const Compute& compute = run.compute;
    const std::size_t heads = own.part.heads, tokens = x.rows();
    const States latent = normed(compute, own.query_norm, apply(compute, own.query_down, x));
    States projected = apply(compute, own.part.query, latent);
    norm_rows(compute, own.head_norm, own.part.d_k, projected);
    HeadInputs inputs;
    inputs.query = split(projected, heads);
    States& key = inputs.key = normed(compute, own.key_norm, apply(compute, own.key, x));
    record_heads(run, "unrotated_queries", inputs.query, heads, "q_len");
    record_heads(run, "unrotated_keys", key, heads, "kv_len");
    rotate(own.rotation, run.positions, inputs.query);
    rotate(own.rotation, run.positions, key);
    if (run.cache != nullptr)
        key = run.cache->attention.key = joined(1, run.cache->attention.key, key);
    const std::size_t plain = key.rows();
    Array<double> seen;  // compressed keys by query
    if (own.compressor) {
        const States compressed = compress(run, *own.compressor, x, 0);
        seen = seen_by(run, *own.compressor, compressed.rows());
        if (own.indexer) choose(run, *own.indexer, latent, x, seen);
        key = joined(1, key, compressed);
    }
    const std::size_t all = key.rows();
    inputs.allowed = Array<double>::from_shape({tokens, all});
    for_each_index(tokens, [&](std::size_t t) {
        for (std::size_t k = 0; k < all; ++k) {
            const std::size_t at = run.past + t;
            const bool is_near = k <= at && at - k < own.window &&
                                 (run.valid_keys.empty() || k >= plain || run.valid_keys[k]);
            inputs.allowed(t, k) = k < plain ? (is_near ? 1 : 0) : seen(t, k - plain);
        }
    });
    inputs.value = key;
    States context = split(attend_heads(run, own.part, std::move(inputs)), heads);
    rotate(own.rotation, run.positions, context, true);
    return project_groups(run, own, context);
}

/// Experts by the table of token ids, if there is one.
Experts by_ids(const BlockRun& run, const HyperBlock& part) {
    if (part.experts_of_ids == nullptr) return part.ffn;
    if (run.token_ids.empty())
        throw SettingError(ErrorKind::usage, "hidden_states", "layer ", run.block.layer,
                           " chooses experts by token id; expected token ids");
    Experts experts = part.ffn;
    const std::size_t chosen = experts.chosen;
    std::vector<double> row(chosen);
    for_each_index(run.token_ids.size(), [&](std::size_t t) {
        const std::uint64_t id = run.token_ids[t];
        if (id >= part.experts_of_ids->shape()[0])
            throw SettingError(ErrorKind::input, "token_ids", "token id ", id,
                               " is outside the table of experts (0 to ",
                               part.experts_of_ids->shape()[0] - 1, ")");
        part.experts_of_ids->read(static_cast<std::size_t>(id) * chosen, chosen, row.data());
        std::vector<std::size_t>& own = experts.by_token.emplace_back();
        for (const double expert : row) {
            if (!(expert >= 0) || expert >= static_cast<double>(experts.count))
                throw SettingError(ErrorKind::input, "tid2eid",
                                   "names an expert that the layer does not have; expected 0 to ",
                                   experts.count - 1);
            own.push_back(static_cast<std::size_t>(expert));
        }
    });
    return experts;
}

}  // namespace

States run_part(BlockRun& run, const HyperBlock& part, const States& x) {
    const Compute& compute = run.compute;
    if (x.depth() != part.attention_streams.streams)
        throw SettingError(ErrorKind::usage, "hidden_states", "layer ", run.block.layer, " has ",
                           part.attention_streams.streams, " streams; expected token ids");
    Connected at = connect(compute, part.attention_streams, x);
    States y =
        attend(run, part.attention, normed(compute, part.attention_norm, std::move(at.input)));
    const States streams = expand(at, x, y);
    at = connect(compute, part.ffn_streams, streams);
    const States input = normed(compute, part.ffn_norm, std::move(at.input));
    return expand(at, streams, run_experts(run, by_ids(run, part), input, input));
}

States run_stage(const Compute& compute, const SumOfStreams& stage, const States& x) {
    const HyperConnection& part = stage.connection;
    const States f = mapped(compute, part, x);
    std::vector<double> weights;
    for_each_index(f.size(), [&](std::size_t i) {
        const double sum = f.at(i) * part.scale[0] + part.base[i % part.streams];
        weights.push_back(sigmoid(sum) + part.eps);
    });
    return weighted_sum(x, weights);
}

}  // namespace attn
