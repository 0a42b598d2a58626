// Masks and biases on scores of unusual kinds of attention.
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/low_precision.hpp"
#include "core/model/run_block.hpp"

namespace attn {

namespace {

constexpr double never = -std::numeric_limits<double>::infinity();

template <class T>
double dot_of(const T* a, const T* b, std::size_t d) {
    double sum = 0;
    for (std::size_t i = 0; i < d; ++i)
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

double to_bfloat16(double x) {
    return double{float_of_bfloat16(bfloat16_of_double(x))};
}

void fill(std::monostate /*none*/, double /*scale*/, std::size_t /*past*/, Array<double>&) {}
void fill(const Alibi& alibi, double scale, std::size_t /*past*/, Array<double>& bias) {
    double* to = bias.data();
    for_each_index(alibi.slopes.size(), [&](std::size_t head) {
        const double slope = alibi.slopes[head];
        std::vector<double> terms(bias.shape(2));
        for (std::size_t k = 0; k < terms.size(); ++k) {
            const auto key = static_cast<double>(k);
            terms[k] = alibi.in_bfloat16
                           ? to_bfloat16(to_bfloat16(slope) * to_bfloat16(key)) * scale
                           : slope * key;
        }
        for (std::size_t q = 0; q < bias.shape(1); ++q) to = std::ranges::copy(terms, to).out;
    });
}
void fill(const BucketBias& of, double /*scale*/, std::size_t past, Array<double>& bias) {
    const std::size_t heads = bias.shape(0);
    for_each_index(bias.shape(1), [&](std::size_t q) {
        for (std::size_t k = 0; k < bias.shape(2); ++k) {
            const std::size_t bucket = of.buckets.of(past + q, k);
            for (std::size_t h = 0; h < heads; ++h) bias(h, q, k) = of.table[bucket * heads + h];
        }
    });
}
void fill(const FixedBias& of, double /*scale*/, std::size_t /*past*/, Array<double>& bias) {
    for_each_index(bias.size(), [&](std::size_t i) {
        bias.data()[i] = i < of.values.size() ? of.values[i] : 0;
    });
}

/// Gives each valid key the bias of the key at its number among the valid ones.
void count_valid(const std::vector<bool>& valid, Array<double>& bias) {
    const std::size_t keys = valid.size();
    for_each_index(bias.size() / keys, [&](std::size_t i) {
        double* const row = bias.data() + i * keys;
        const std::vector<double> all(row, row + keys);
        std::size_t count = 0;
        for (std::size_t k = 0; k < keys; ++k)
            if (valid[k]) row[k] = all[count++];
    });
}

/// -Infinity where a query does not attend to a key.
Array<double> bias_of_keys(const Compute& compute, const AttentionPart& part, const States& value,
                           std::size_t past, std::size_t tokens) {
    const KeyBias& bias = *part.key_bias;
    const std::size_t keys = value.rows(), group = part.heads / part.kv_heads;
    const States mapped = apply(compute, bias.map, merged(value));
    Array<double> out = Array<double>::from_shape({part.heads, tokens, keys});
    out.fill(never);
    for_each_index(part.heads, [&](std::size_t head) {
        const std::size_t own = head / group;
        std::vector<double> row(keys);
        for (std::size_t k = 0; k < keys; ++k)
            row[k] = std::exp(bias.factor[own] * softplus(mapped.at(k * part.kv_heads + own)));
        for (std::size_t t = 0; t < tokens; ++t) {
            const std::size_t last = past + t;
            std::size_t first = 0;
            if (part.window_left && static_cast<std::size_t>(*part.window_left) < last)
                first = last - static_cast<std::size_t>(*part.window_left);
            const std::span<const double> seen(row.data() + first, last + 1 - first);
            for (const std::size_t k : best(seen, bias.kept)) out(head, t, first + k) = seen[k];
        }
    });
    return out;
}

/// The bias of disentangled attention.
Array<double> bias_of_positions(const Compute& compute, const RelativePositions& p,
                                const States& query, const States& key) {
    const std::vector<std::size_t>& shape = p.table->shape();
    if (shape.size() != 2 || p.largest == 0 || p.centre < p.largest ||
        shape[0] != p.centre + p.largest)
        throw Error(ErrorKind::input, p.table->location(), "shape ", shape_text(shape),
                    "; expected ", p.centre + p.largest,
                    " rows, by max_relative_positions, position_buckets or "
                    "max_position_embeddings in the model's config.json");
    const std::size_t heads = query.depth(), q_len = query.rows(), kv_len = key.rows(),
                      d = query.columns(),
                      span = p.clamps_to_length ? std::min(std::max(q_len, kv_len), p.largest)
                                                : p.largest;
    States rows(query.dtype(), 1, 2 * span, shape[1]);
    numbers_of(rows)([&, count = rows.size()](auto* to) {
        p.table->read((p.centre - span) * shape[1], count, to);
    });
    rows = normed(compute, p.norm, std::move(rows));
    const States keys = p.key ? split(apply(compute, p.key, rows), heads) : States(),
                 queries = p.query ? split(apply(compute, p.query, rows), heads) : States();
    for (const LinearMap* const map : {&p.key, &p.query})
        if (*map) compute.count(heads * q_len, kv_len * d);
    Array<double> scores = Array<double>::from_shape({heads, q_len, kv_len});
    const auto last = static_cast<std::int64_t>(2 * span) - 1;
    const auto score_row = [&]<class T>(std::size_t row, const T* q, const T* k_rows,
                                        const T* of_keys, const T* of_queries) {
        const std::size_t h = row / q_len;
        q += row * d;
        for (std::size_t k = 0; k < kv_len; ++k) {
            const auto distance =
                static_cast<std::int64_t>(row % q_len) - static_cast<std::int64_t>(k);
            const std::int64_t moved =
                (p.bucket ? p.bucket(distance) : distance) + static_cast<std::int64_t>(span);
            const std::size_t at =
                h * 2 * span + static_cast<std::size_t>(std::clamp<std::int64_t>(moved, 0, last));
            double score = 0;
            if (of_keys != nullptr) score += dot_of(q, of_keys + at * d, d);
            if (of_queries != nullptr)
                score += dot_of(k_rows + (h * kv_len + k) * d, of_queries + at * d, d);
            scores.data()[row * kv_len + k] = score * p.scale;
        }
    };
    for_each_row(compute, heads * q_len, kv_len * d, score_row, query, key, keys, queries);
    return scores;
}

/// Multiplies the rows of each head's bias by the gates computed from x, (1, tokens, heads * d).
void gate_bias(const Compute& compute, const AttentionPart& part, const States& x,
               Array<double>& bias) {
    const std::size_t tokens = x.rows(), heads = part.heads, keys = bias.shape(2);
    const States mapped = apply(compute, part.bias_gate->map,
                                States(x).shaped(1, tokens * heads, x.columns() / heads));
    for_each_index(tokens * heads, [&](std::size_t row) {
        double sums[2] = {0, 0};
        for (std::size_t i = 0; i < 8; ++i) sums[i / 4] += mapped.at(row * 8 + i);
        const std::size_t t = row / heads, h = row % heads;
        const double gate =
            sigmoid(sums[0]) * (sigmoid(sums[1]) * part.bias_gate->constants[h] - 1) + 2;
        for (std::size_t k = 0; k < keys; ++k) bias(h, t, k) *= gate;
    });
}

}  // namespace

Array<double> score_bias(BlockRun& run, const AttentionPart& part, const States& x,
                         const HeadInputs& heads) {
    const std::size_t tokens = x.rows(), kv_len = heads.key.rows(),
                      past = heads.is_cross ? 0 : run.past;
    Array<double> bias;
    if (part.bias.index() != 0) {
        bias = Array<double>::from_shape({part.heads, tokens, kv_len});
        std::visit([&](const auto& of) { fill(of, part.scale, past, bias); }, part.bias);
    }
    if (part.bias_counts_valid && !run.valid_keys.empty()) count_valid(run.valid_keys, bias);
    if (part.key_bias) bias = bias_of_keys(run.compute, part, heads.value, past, tokens);
    if (part.content_bias)
        bias = bias_of_positions(run.compute, *part.content_bias, heads.query, heads.key);
    if (part.bias_gate) gate_bias(run.compute, part, x, bias);
    return bias;
}

Array<double> allowed_keys(const BlockRun& run, const AttentionPart& part,
                           const HeadInputs& heads) {
    const std::size_t before = heads.before, q_len = heads.query.rows(), kv_len = heads.key.rows(),
                      past = heads.is_cross ? 0 : run.past;
    const std::vector<bool>& own = heads.is_cross ? run.valid_encoder_keys : run.valid_keys;
    const std::vector<bool>& encoder = run.valid_encoder_keys;
    const bool has_invalid = std::ranges::find(own, false) != own.end();
    const bool has_packed = !heads.is_cross && !run.packed.empty();
    if (before == 0 ? !part.chunk && !has_invalid && !has_packed
                    : !part.window_left && own.empty() && encoder.empty())
        return {};
    Array<double> mask = Array<double>::from_shape({q_len, kv_len});
    // Chunks begin after padding on the left.
    const auto first = static_cast<std::size_t>(std::ranges::find(own, true) - own.begin());
    const auto is_allowed = [&](std::size_t query, std::size_t key) {
        if (key < before) return encoder.empty() || encoder[key];
        key -= before;
        if (!own.empty() && !own[key]) return false;
        if (before != 0)
            return !part.window_left || query <= key + static_cast<std::size_t>(*part.window_left);
        if (has_packed && run.packed[query] != run.packed[key]) return false;
        return !part.chunk || key < first || query < first ||
               (query - first) / *part.chunk == (key - first) / *part.chunk;
    };
    for_each_index(q_len, [&](std::size_t q) {
        for (std::size_t k = 0; k < kv_len; ++k) mask(q, k) = is_allowed(past + q, k) ? 1 : 0;
    });
    return mask;
}

Array<double> chosen_keys(BlockRun& run, const IndexerPart& part, const States& x,
                          const States& latent) {
    const Compute& compute = run.compute;
    States query = split(apply(compute, part.query, latent), part.heads);
    States key = normed(compute, part.key_norm, apply(compute, part.key, x));
    if (part.rotation) {
        rotate(*part.rotation, run.positions, query);
        rotate(*part.rotation, run.positions, key);
    }
    if (run.cache != nullptr) key = run.cache->index_key = joined(1, run.cache->index_key, key);
    const States weights = apply(compute, part.weights, x);
    const std::size_t tokens = x.rows(), keys = key.rows(), d = part.width;
    compute.count(tokens, keys * part.heads * d);
    const double scale = 1 / std::sqrt(static_cast<double>(d)),
                 of_heads = 1 / std::sqrt(static_cast<double>(part.heads));
    Array<double> chosen = Array<double>::from_shape({tokens, keys});
    chosen.fill(0);
    const auto choose = [&]<class T>(std::size_t t, const T* q_rows, const T* k_rows) {
        std::vector<double> sums(keys), seen(keys, never);
        for (std::size_t h = 0; h < part.heads; ++h) {
            const double weight = weights.at(t * part.heads + h) * of_heads;
            for (std::size_t k = 0; k < keys; ++k)
                sums[k] +=
                    weight *
                    std::max(0.0, dot_of(q_rows + (h * tokens + t) * d, k_rows + k * d, d) * scale);
        }
        for (std::size_t k = 0; k < keys && k <= run.past + t; ++k)
            if (run.allows(run.past + t, k)) seen[k] = sums[k];
        for (const std::size_t k : indices_of_largest(seen, part.chosen)) chosen(t, k) = 1;
    };
    for_each_row(compute, tokens, keys * d * part.heads, choose, query, key);
    if (part.is_shared && run.shared != nullptr) (*run.shared)[run.block.layer].chosen = chosen;
    return chosen;
}

std::vector<std::size_t> best(std::span<const double> scores, std::size_t count) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
    std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
        return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
    });
    order.erase(end, order.end());
    return order;
}

std::vector<std::size_t> indices_of_largest(const std::vector<double>& scores, std::size_t count) {
    using Scored = std::pair<double, std::size_t>;
    std::vector<Scored> all;
    for (std::size_t i = 0; i < scores.size(); ++i) all.emplace_back(scores[i], i);
    const auto is_before = [](const Scored& a, const Scored& b) { return a.first > b.first; };
    const std::size_t chosen = std::min(count, all.size());
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(chosen);
    if (chosen * 64 <= all.size())
        std::partial_sort(all.begin(), end, all.end(), is_before);
    else if (chosen != 0)
        std::nth_element(all.begin(), end - 1, all.end(), is_before);
    std::vector<std::size_t> indices;
    for (auto it = all.begin(); it != end; ++it)
        if (it->first != never) indices.push_back(it->second);
    return indices;
}

std::vector<double> sine_row(double position, std::size_t width, double shortened) {
    constexpr double base = 10000;
    const std::size_t cosines = width / 2, sines = width - cosines;
    std::vector<double> row(width);
    for (std::size_t i = 0; i < sines; ++i) {
        const double exponent =
            static_cast<double>(i) / (static_cast<double>(width) / 2 - shortened);
        const double angle = position * std::pow(base, -exponent);
        row[i] = std::sin(angle);
        if (i < cosines) row[sines + i] = std::cos(angle);
    }
    return row;
}

}  // namespace attn
