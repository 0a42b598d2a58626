// The variance of the errors of one query's output, in a program that rounds every step to bfloat16
// or float16: each rounding is off by at most half a unit in the last place, and roundings of
// different numbers are independent. Equal numbers have equal errors, so that those of keys whose
// scores are equal to rounding, which are one cell, are also added up with one sign.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "core/check/evaluate.hpp"

namespace attn {
namespace {

double square(double x) {
    return x * x;
}

double square_of_half(const PrecisionRow& type, double x) {
    return square(half_unit(type, x));
}

/// Signs in which a query's elements may be off.
constexpr std::size_t probe_count = 8;

std::uint64_t random_bits(std::uint64_t seed) {  // SplitMix64
    std::uint64_t x = seed * 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

}  // namespace

/// A key with a weight, or the sink, whose value is 0.
struct Candidate::NoisyKey {
    std::size_t key;
    std::int64_t cell;
    double weight;                    ///< the most that it may be off
    double score;                     ///< its own part of the exponent, times the weight
    double factor;                    ///< of an error of the product of query and key
    double of_query = 0, of_key = 0;  ///< variances from the roundings of these
};

bool Candidate::has_noise(ArrayId array) const {
    const bool is_half =
        shared_.arithmetic() == Precision::float16 || shared_.arithmetic() == Precision::bfloat16;
    return is_half && (array == "context_vectors" || array == "head_outputs") && !is_linear_ &&
           !c_.drops && c_.axis == SoftmaxAxis::keys && c_.blocking == Blocking::before &&
           !problem_.projection[index_of(Tensor::out)] && !problem_.input_norm &&
           !problem_.query_norm && !problem_.key_norm && !plan_.config.qk_norm;
}

std::size_t Candidate::heads_in_row(ArrayId array) const {
    return array == "head_outputs" || plan_.shown.separate_heads ? 1 : plan_.heads;
}

const Noise& Candidate::noise(ArrayId array, const RowPlace& at, NoiseDetail detail) {
    noise_.clear();
    const std::size_t heads = heads_in_row(array);
    if (heads == 1) {
        add_noise_of_head(answered(at), detail);
        return noise_;
    }
    for (std::size_t head = 0; head < heads; ++head)
        add_noise_of_head(answered({at.batch, head, at.row}), detail);
    return noise_;
}

void Candidate::add_noise_of_head(QueryRow& q, NoiseDetail detail) {
    const PrecisionRow& type = row_of(shared_.arithmetic());
    const RowsView values = joined(Tensor::value, q.at.batch, kv_head_of(q.at.head));
    const std::vector<double>& o = q.output.value;
    const std::size_t columns = o.size(), first = noise_.half.size();
    std::vector<double>& largest =
        largest_value_[q.at.batch * plan_.kv_heads + kv_head_of(q.at.head)];
    if (largest.empty())
        for (std::size_t k = 0; k < values.rows; ++k)
            largest.push_back(
                std::accumulate(values.at(k), values.at(k) + columns, 0.0,
                                [](double most, double x) { return std::max(most, std::abs(x)); }));
    double floor = 0;
    for (std::size_t k = 0; k < values.rows; ++k)
        if (q.weight.value[k] > 0) floor = std::max(floor, largest[k]);
    constexpr double of_float32_sums = 0x1p-20;
    floor *= of_float32_sums;
    noise_.floor = std::max(noise_.floor, floor);
    for (std::size_t i = 0; i < columns; ++i) {
        const double h = half_unit(type, o[i]);
        noise_.half.push_back(h);
        // Twice the variance; a numerator or a normaliser may be rounded separately.
        noise_.variance.push_back(square(h) + square(type.unit * o[i]));
    }
    double* const variance = noise_.variance.data() + first;
    if (detail != NoiseDetail::storing) add_noise_of_steps(q, values, detail, variance);
    if (detail != NoiseDetail::storing && problem_.projection[index_of(Tensor::value)])
        add_noise_of_values(q, values, variance);
    for (std::size_t i = 0; i < columns; ++i) variance[i] = variance[i] / 2 + square(floor);
}

/// Of values that are projected and stored. Those of equal tokens are equal, and so are their
/// errors.
void Candidate::add_noise_of_values(const QueryRow& q, const RowsView& values, double* variance) {
    const PrecisionRow& type = row_of(shared_.arithmetic());
    std::vector<std::size_t>& same =
        same_value_[q.at.batch * plan_.kv_heads + kv_head_of(q.at.head)];
    if (same.empty()) {
        std::map<std::vector<double>, std::size_t> first;
        for (std::size_t k = 0; k < values.rows; ++k)
            same.push_back(
                first.try_emplace({values.at(k), values.at(k) + values.columns}, k).first->second);
    }
    std::vector<double> weight(values.rows, 0);
    const std::size_t cached = values.rows - problem_.tokens(Tensor::value);
    for (std::size_t k = cached; k < values.rows; ++k) weight[same[k]] += q.weight.value[k];
    for (std::size_t k = 0; k < values.rows; ++k)
        for (std::size_t i = 0; i < values.columns && weight[k] > 0; ++i)
            variance[i] += square(weight[k] * half_unit(type, values.at(k)[i]));
}

/// Keys with a weight in the order of their cells, and the error of the slope of ALiBi.
std::vector<Candidate::NoisyKey> Candidate::noisy_keys(const QueryRow& q, double* slope_error) {
    const PrecisionRow& type = row_of(shared_.arithmetic());
    const double u = type.unit, scale = c_.scale, cap = c_.softcap;
    const bool is_float16 = shared_.arithmetic() == Precision::float16;
    const std::vector<double>&score = q.scores.value, &weight = q.weight.value;
    const double cell_size = std::log1p(2 * u);
    constexpr std::int64_t flushed = std::int64_t{1} << 62;
    double most = no_score;
    for (std::size_t k = 0; k < score.size(); ++k)
        if (weight[k] > 0) most = std::max(most, score[k]);
    const auto cell_of = [&](double x, double p) {
        // Subnormal weights in float16 may be 0.
        if (is_float16 && p < 0x1p-24) return flushed;
        return static_cast<std::int64_t>(std::floor((most - x) / cell_size));
    };
    const auto weight_error = [&](double p) {
        return is_float16 ? std::min(p, std::max(u * p, type.least / 2)) : u * p;
    };
    std::vector<NoisyKey> keys;
    keys.reserve(score.size() + 1);
    const double slope = c_.alibi.is_on ? slope_of(q.at.head) : 0;
    *slope_error = type.round(slope) - slope;
    for (std::size_t k = 0; k < score.size(); ++k) {
        const double p = weight[k];
        if (!(p > 0)) continue;
        double x = q.raw.value[k] * scale, factor = 1,
               squares =
                   square(scale) * square_of_half(type, q.raw.value[k]) + square_of_half(type, x);
        if (cap != 0) {
            const double bent = std::tanh(x / cap);
            factor = 1 - square(bent);
            squares = square(factor) * (squares + square(cap) * square_of_half(type, x / cap)) +
                      square(cap) * square_of_half(type, bent) + square_of_half(type, cap * bent);
            x = cap * bent;
        }
        if (c_.alibi.is_on) {
            const double distance = alibi_distance(q, k), bias = slope * distance;
            x += bias;
            squares += square_of_half(type, bias) + square(slope) * square_of_half(type, distance) +
                       square_of_half(type, x);
        }
        for (std::size_t i = 0; i < problem_.masks.size(); ++i) {
            const double added = added_by_mask(q, i, k);
            if (added == 0) continue;
            x += added;
            squares += square_of_half(type, added) + square_of_half(type, x);
        }
        keys.push_back({k, cell_of(score[k], p), weight_error(p), p * std::sqrt(squares),
                        square(p * factor * scale)});
    }
    if (q.sink_weight > 0) {
        const double sink = sink_of_head(q.at.head), p = q.sink_weight;
        keys.push_back(
            {score.size(), cell_of(sink, p), weight_error(p), p * half_unit(type, sink), 0});
    }
    std::sort(keys.begin(), keys.end(),
              [](const NoisyKey& a, const NoisyKey& b) { return a.cell < b.cell; });
    return keys;
}

/// Of the roundings of the projection and rotation of a row, and of one that is multiplied by the
/// scale first.
void Candidate::set_head_variance(const double* plain, const double* made,
                                  const RowRotation* rotation, std::size_t position,
                                  std::size_t columns, bool is_projected, double* variance) const {
    const PrecisionRow& type = row_of(shared_.arithmetic());
    std::vector<double> of_plain(columns, 0);
    for (std::size_t i = 0; i < columns && is_projected; ++i)
        of_plain[i] = square_of_half(type, plain[i]);
    for (std::size_t i = 0; i < columns; ++i)
        variance[i] = square_of_half(type, made[i]) + of_plain[i];
    if (rotation == nullptr) return;
    const bool is_half = rotation->layout == Rope::half;
    const std::size_t step = is_half ? 1 : 2, apart = is_half ? rotation->pairs : 1;
    for (std::size_t i = 0; i < rotation->pairs; ++i) {
        const double cos = rotation->cosine[position * rotation->pairs + i],
                     sin = rotation->sine[position * rotation->pairs + i];
        const double of_cos = square_of_half(type, cos), of_sin = square_of_half(type, sin);
        const std::size_t one = i * step, other = one + apart;
        for (const auto& [to, with_cos, with_sin] :
             {std::array{one, one, other}, std::array{other, other, one}}) {
            const double x = plain[with_cos], y = plain[with_sin];
            // Its own error before the rotation becomes that of both.
            variance[to] += square(cos) * of_plain[with_cos] - of_plain[to] +
                            square(sin) * of_plain[with_sin] + square(x) * of_cos +
                            square(y) * of_sin + square_of_half(type, x * cos) +
                            square_of_half(type, y * sin) + square_of_half(type, made[to]);
        }
    }
}

std::shared_ptr<const BoundedRows> Candidate::key_variance(std::size_t batch, std::size_t kv_head) {
    return shared_.key_variance(batch, kv_head, c_, [&] {
        const RowsView keys = joined(Tensor::key, batch, kv_head),
                       fresh = unrotated(Tensor::key, batch, kv_head);
        const std::size_t cached = keys.rows - fresh.rows;
        BoundedRows made(keys.rows, keys.columns);
        const std::shared_ptr<const RowRotation> rotation =
            c_.rope.pairs
                ? shared_.rotation(c_.rope, c_.rope.first_key, fresh.rows, c_.rope.key_times)
                : nullptr;
        for (std::size_t k = 0; k < keys.rows; ++k) {
            const bool is_new = k >= cached;
            set_head_variance(
                is_new ? fresh.at(k - cached) : keys.at(k), keys.at(k),
                is_new ? rotation.get() : nullptr, is_new ? k - cached : 0, keys.columns,
                is_new && problem_.projection[index_of(Tensor::key)].has_value(), made.at(k));
        }
        return made;
    });
}

void Candidate::add_noise_of_steps(const QueryRow& q, const RowsView& values, NoiseDetail detail,
                                   double* variance) {
    const std::vector<double>& o = q.output.value;
    const std::size_t columns = o.size(), kv_head = kv_head_of(q.at.head);
    const RowsView keys = joined(Tensor::key, q.at.batch, kv_head);
    const std::size_t width = keys.columns, token = plan_.first_query + q.at.row;
    const std::shared_ptr<const BoundedRows> spread = key_variance(q.at.batch, kv_head);
    const RowsView of_keys = spread->view();
    const RowsView all = unrotated(Tensor::query, q.at.batch, q.at.head);
    const RowsView query = query_of(q.at);
    std::vector<double> of_query(width);
    set_head_variance(
        all.at(token), query.value,
        c_.rope.pairs
            ? shared_.rotation(c_.rope, c_.rope.first_query, all.rows, c_.rope.query_times).get()
            : nullptr,
        token, width, problem_.projection[index_of(Tensor::query)].has_value(), of_query.data());
    double slope_error = 0;
    std::vector<NoisyKey> noisy = noisy_keys(q, &slope_error);
    for (NoisyKey& one : noisy) {
        if (one.key == keys.rows) continue;
        const double *const k = keys.at(one.key), *const of_key = of_keys.at(one.key);
        for (std::size_t e = 0; e < width; ++e) {
            one.of_key += query.value[e] * query.value[e] * of_key[e];
            one.of_query += of_query[e] * k[e] * k[e];
        }
        one.of_key *= one.factor;
        one.of_query *= one.factor;
    }
    struct Sums {
        double sum = 0, together = 0, apart = 0;  // of a cell; by cells; independent
        void add(double x) {
            sum += x;
            apart += x * x;
        }
        void end_cell() { together += square(std::exchange(sum, 0)); }
        double larger() const { return std::max(together, apart); }
    };
    std::vector<Sums> plain(columns), centred(columns), scores(columns);
    std::vector<double> from_keys(columns), from_query(columns), slopes(columns);
    const std::vector<double> zeros(columns, 0);
    for (std::size_t at = 0; at < noisy.size(); ++at) {
        const NoisyKey& one = noisy[at];
        const double* const v = one.key < values.rows ? values.at(one.key) : zeros.data();
        const bool ends = at + 1 == noisy.size() || noisy[at + 1].cell != one.cell;
        for (std::size_t i = 0; i < columns; ++i) {
            const double x = v[i], y = x - o[i];
            plain[i].add(one.weight * x);
            centred[i].add(one.weight * y);
            scores[i].add(one.score * y);
            from_keys[i] += one.of_key * y * y;
            from_query[i] += one.of_query * y * y;
            for (Sums* const sums : {&plain[i], &centred[i], &scores[i]})
                if (ends) sums->end_cell();
        }
    }
    if (slope_error != 0)
        for (const NoisyKey& one : noisy) {
            if (one.key >= values.rows) continue;
            const double* const v = values.at(one.key);
            const double error = q.weight.value[one.key] * slope_error * alibi_distance(q, one.key);
            for (std::size_t i = 0; i < columns; ++i) slopes[i] += error * (v[i] - o[i]);
        }
    if (detail == NoiseDetail::all) add_probes(q, keys, values, noisy, of_query, from_query);
    for (std::size_t i = 0; i < columns; ++i)
        variance[i] += std::max(plain[i].larger(), centred[i].larger()) + scores[i].larger() +
                       from_keys[i] + from_query[i] + square(slopes[i]);
}

/// An error of the query moves the scores of all keys, which may be alike in the same way as their
/// values are: the mean over random signs of its elements' errors, where that is larger.
void Candidate::add_probes(const QueryRow& q, const RowsView& keys, const RowsView& values,
                           const std::vector<NoisyKey>& noisy, const std::vector<double>& of_query,
                           std::vector<double>& from_query) const {
    const std::vector<double>& o = q.output.value;
    const std::size_t columns = o.size(), width = keys.columns;
    std::vector<double> moved(probe_count * columns, 0), signed_error(probe_count * width);
    const std::uint64_t seed = (q.at.batch * plan_.heads + q.at.head) * plan_.q_len + q.at.row;
    for (std::size_t e = 0; e < width; ++e) {
        const std::uint64_t bits = random_bits(seed * width + e + 1);
        for (std::size_t probe = 0; probe < probe_count; ++probe)
            signed_error[probe * width + e] =
                ((bits >> probe) & 1U) != 0 ? std::sqrt(of_query[e]) : -std::sqrt(of_query[e]);
    }
    for (const NoisyKey& one : noisy) {
        if (one.key == keys.rows) continue;
        const double factor = std::sqrt(one.factor);
        const double* const v = values.at(one.key);
        for (std::size_t probe = 0; probe < probe_count; ++probe) {
            const double w = factor * inner_product(signed_error.data() + probe * width,
                                                    keys.at(one.key), width);
            double* const to = moved.data() + probe * columns;
            for (std::size_t i = 0; i < columns; ++i) to[i] += w * (v[i] - o[i]);
        }
    }
    std::vector<double> mean(columns, 0);
    for (std::size_t probe = 0; probe < probe_count; ++probe)
        for (std::size_t i = 0; i < columns; ++i)
            mean[i] += square(moved[probe * columns + i]) / probe_count;
    const double least =
        std::accumulate(mean.begin(), mean.end(), 0.0) / static_cast<double>(columns);
    for (std::size_t i = 0; i < columns; ++i)
        from_query[i] = std::max({from_query[i], mean[i], least});
}

}  // namespace attn
