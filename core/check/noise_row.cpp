// The variance of the errors of one query's output, in a program that rounds every step to bfloat16
// or float16: each rounding is off by at most half a unit in the last place, and roundings of
// different numbers are independent. Equal numbers have equal errors, so that those of keys whose
// scores are equal to rounding, which are one cell, are also added up with one sign.
#include <numeric>

#include "core/check/evaluate.hpp"

namespace attn {
namespace {

/// Random sign vectors for the errors of a query's elements.
constexpr std::size_t probe_count = 8;

std::uint64_t random_bits(std::uint64_t seed) {  // SplitMix64
    std::uint64_t x = seed * 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

}  // namespace

bool Candidate::has_noise(const Evaluator& evaluator, const Conventions& c, ArrayId array) {
    static constexpr ArraySet outputs{"context_vectors", "head_outputs"};
    // Projected queries, keys and values have bounds of a few units in the last place already.
    static constexpr ArraySet of_softmax{"attention_weights", "weights_before_dropout",
                                         "logsumexp"};
    const Problem& problem = evaluator.problem();
    const NumberType type = evaluator.arithmetic();
    const bool is_gradient = array.row().is_gradient();
    if (c.weights || c.sink_from_max || c.groups != c.value_groups || c.log_factor != 1 ||
        c.output != OutputConvention() || c.state != StateConvention() ||
        c.stated_sum != StatedSum::logsumexp)
        return false;
    if ((type != NumberType::float16 && type != NumberType::bfloat16) ||
        (c.drops && !is_gradient) || c.modifies_scores() || c.prob_mod ||
        problem.plan.config.top_k || problem.input_norm || problem.query_norm || problem.key_norm ||
        is_rounded(problem.plan.config.sum_type()) ||
        is_rounded(problem.plan.config.softmax_type()))
        return false;
    // In linear attention the roundings of normalised queries and keys are among those of its
    // steps.
    if (problem.plan.config.rule) return outputs.has(array) || is_gradient;
    if (c.qk_norm) return false;
    return (is_gradient || outputs.has(array) || of_softmax.has(array)) &&
           c.axis == SoftmaxAxis::keys && c.blocking == Blocking::before;
}

NoiseDetail Candidate::last_detail(ArrayId array) const {
    if (array.row().is_gradient()) return NoiseDetail::storing;
    const bool sums_values = array == "context_vectors" || array == "head_outputs";
    return sums_values && !is_linear_ ? NoiseDetail::all : NoiseDetail::steps;
}

std::size_t Candidate::heads_in_row(ArrayId array) const {
    return array == "context_vectors" && !plan_.shown.separate_heads && !projects_out()
               ? plan_.heads
               : 1;
}

const Noise& Candidate::noise(ArrayId array, const RowIndex& at, NoiseDetail detail) {
    noise_.clear();
    const Fill fill = fill_of(array);
    if (array.row().is_gradient()) {
        if (!with_errors_ && !detailed_) detailed_ = std::make_unique<Candidate>(shared_, c_, true);
        Candidate& detailed = with_errors_ ? *this : *detailed_;
        const Numbers& made = detailed.row(array, at.batch, at.head, at.row);
        for (std::size_t i = 0; i < made.value.size(); ++i)
            noise_.add(i, half_unit(type_, made.value[i]), detailed.answer_variance_[i]);
    } else if (fill == &Candidate::fill_weight) {
        add_noise_of_weights(array, at, detail);
    } else if (fill == &Candidate::fill_statistic) {
        add_noise_of_logsumexp(at, detail);
    } else if (array == "context_vectors" && projects_out()) {
        add_noise_of_output_projection(at, detail);
    } else {
        const std::size_t heads = heads_in_row(array);
        for (std::size_t head = 0; head < heads; ++head)
            add_noise_of_head(at, head, heads > 1, detail);
    }
    return noise_;
}

void Candidate::add_noise_of_head(const RowIndex& at, std::size_t head, bool joins,
                                  NoiseDetail detail) {
    QueryRow& q = answered(joins ? joined_from(at, head) : at);
    const RowsView values = joined(Tensor::value, q.at.batch, kv_head_of(q.at.head));
    const std::vector<double>& o = q.output.value;
    std::vector<double> variance(o.size());
    const double floor = floor_of(q, values);
    for (std::size_t i = 0; i < o.size(); ++i)
        // A numerator or a normaliser may be rounded separately.
        variance[i] = square_of_half(type_, o[i]) + square(type_.unit * o[i]);
    if (detail != NoiseDetail::storing && is_linear_) {
        add_noise_of_states(q, variance.data());
    } else if (detail != NoiseDetail::storing) {
        add_noise_of_steps(q, noisy_row(q), values, o.data(), detail, variance.data());
        if (problem_.projection[index_of(Tensor::value)])
            add_noise_of_values(q, values, variance.data());
    }
    for (std::size_t i = 0; i < o.size(); ++i)
        if (!is_linear_ || variance[i] != HUGE_VAL)
            noise_.add(joins ? joined_column(head, i) : i, half_unit(type_, o[i]),
                       variance[i] / 2 + square(floor));
    noise_.floor = std::max(noise_.floor, floor);
}

/// Of sums in float32, and of subnormal numbers, which programs may take as 0.
double Candidate::floor_of(const QueryRow& q, const RowsView& values) {
    const double normal = shared_.arithmetic() == NumberType::float16 ? 0 : type_.least_normal();
    if (is_linear_) return normal * static_cast<double>(plan_.d_k);
    double most = 0;
    std::vector<double>& largest =
        largest_value_[q.at.batch * plan_.kv_heads + kv_head_of(q.at.head)];
    if (largest.empty())
        for (std::size_t k = 0; k < values.rows; ++k)
            largest.push_back(
                std::accumulate(values.at(k), values.at(k) + values.columns, 0.0,
                                [](double a, double b) { return std::max(a, std::abs(b)); }));
    for (std::size_t k = 0; k < values.rows; ++k)
        if (q.weight.value[k] > 0) most = std::max(most, largest[k]);
    return std::max(of_float32_sums * most, normal);
}

/// The weights of values that are projected and stored. Those of equal tokens are equal, and so are
/// their errors: the first has the weights of all.
std::vector<double> Candidate::shared_weights(const QueryRow& q) {
    const RowsView values = joined(Tensor::value, q.at.batch, kv_head_of(q.at.head));
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
    return weight;
}

void Candidate::add_noise_of_values(const QueryRow& q, const RowsView& values, double* variance) {
    const std::vector<double> weight = shared_weights(q);
    for (std::size_t k = 0; k < values.rows; ++k)
        for (std::size_t i = 0; i < values.columns && weight[k] > 0; ++i)
            variance[i] += square(weight[k] * half_unit(type_, values.at(k)[i]));
}

/// Without `of_query` and `of_key` of its keys, which cost the most.
NoisyRow Candidate::noisy_scores(const QueryRow& q) const {
    const double u = type_.unit, scale = scale_of(q.at.head), cap = c_.softcap;
    const bool is_float16 = shared_.arithmetic() == NumberType::float16;
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
        return is_float16 ? std::min(p, std::max(u * p, type_.least / 2)) : u * p;
    };
    NoisyRow made;
    std::vector<NoisyKey>& keys = made.keys;
    keys.reserve(score.size() + 1);
    const double slope = c_.alibi.is_on ? slope_of(q.at.head) : 0;
    made.slope_error = type_.round(slope) - slope;
    for (std::size_t k = 0; k < score.size(); ++k) {
        const double p = weight[k];
        if (!(p > 0)) continue;
        double x = q.raw.value[k] * scale, factor = 1,
               squares =
                   square(scale) * square_of_half(type_, q.raw.value[k]) + square_of_half(type_, x);
        if (cap != 0) {
            const double bent = std::tanh(x / cap);
            factor = 1 - square(bent);
            squares = square(factor) * (squares + square(cap) * square_of_half(type_, x / cap)) +
                      square(cap) * square_of_half(type_, bent) + square_of_half(type_, cap * bent);
            x = cap * bent;
        }
        if (c_.alibi.is_on) {
            const double distance = alibi_distance(q, k), bias = slope * distance;
            x += bias;
            squares += square_of_half(type_, bias) +
                       square(slope) * square_of_half(type_, distance) + square_of_half(type_, x);
        }
        for (std::size_t i = 0; i < c_.masks.size(); ++i) {
            const double added = added_by_mask(q, i, k);
            if (added == 0) continue;
            x += added;
            squares += square_of_half(type_, added) + square_of_half(type_, x);
        }
        keys.push_back({k, cell_of(score[k], p), p, weight_error(p), std::sqrt(squares),
                        square(factor * scale)});
    }
    if (q.sink_weight > 0) {
        const double sink = sink_of_head(q.at.head), p = q.sink_weight;
        keys.push_back(
            {score.size(), cell_of(sink, p), p, weight_error(p), half_unit(type_, sink)});
    }
    std::sort(keys.begin(), keys.end(),
              [](const NoisyKey& a, const NoisyKey& b) { return a.cell < b.cell; });
    return made;
}

std::vector<double> Candidate::query_variance(const RowIndex& at) {
    const RowsView all = unrotated(Tensor::query, at.batch, at.head), query = query_of(at);
    const std::size_t token = plan_.first_query + at.row;
    std::vector<double> variance(query.columns);
    set_head_variance(
        all.at(token), query.value,
        c_.rope.pairs
            ? shared_.rotation(c_.rope, Tensor::query, at.batch, c_.rope.query_times).get()
            : nullptr,
        token, query.columns, problem_.projection[index_of(Tensor::query)].has_value(),
        variance.data());
    return variance;
}

NoisyRow Candidate::noisy_row(const QueryRow& q) {
    NoisyRow made = noisy_scores(q);
    made.of_query = query_variance(q.at);
    const RowsView keys = joined(Tensor::key, q.at.batch, kv_head_of(q.at.head)),
                   query = query_of(q.at);
    const std::size_t width = keys.columns;
    const std::shared_ptr<const BoundedRows> spread =
        key_variance(q.at.batch, kv_head_of(q.at.head));
    double mean_error = 0;
    for (NoisyKey& one : made.keys) {
        if (one.key < keys.rows) {
            const double *const k = keys.at(one.key), *const of_key = spread->view().at(one.key);
            for (std::size_t e = 0; e < width; ++e) {
                one.of_key += query.value[e] * query.value[e] * of_key[e];
                one.of_query += made.of_query[e] * k[e] * k[e];
            }
        }
        const double error =
            std::sqrt(square(one.score) + one.factor * (one.of_key + one.of_query));
        mean_error += one.p * error;
        // Errors of exponents that are not small move a weight by e^error - 1, to 1 at the most.
        constexpr double likely = 3;
        const double grown =
            error == 0
                ? one.p
                : std::min(one.p * std::expm1(std::min(likely * error, 600.0)) / (likely * error),
                           1 / error);
        one.score *= grown;
        one.factor *= square(grown);
        one.of_key *= one.factor;
        one.of_query *= one.factor;
    }
    constexpr double largest_mean = 1;
    made.is_known = mean_error <= largest_mean;
    return made;
}

/// Of the roundings of the projection and rotation of a row, and of one that is multiplied by the
/// scale first.
void Candidate::set_head_variance(const double* plain, const double* made,
                                  const RowRotation* rotation, std::size_t position,
                                  std::size_t columns, bool is_projected, double* variance) const {
    std::vector<double> of_plain(columns, 0);
    for (std::size_t i = 0; i < columns && is_projected; ++i)
        of_plain[i] = square_of_half(type_, plain[i]);
    for (std::size_t i = 0; i < columns; ++i)
        variance[i] = square_of_half(type_, made[i]) + of_plain[i];
    if (rotation == nullptr) return;
    const bool is_half = rotation->layout == Rope::half;
    const std::size_t step = is_half ? 1 : 2, apart = is_half ? rotation->pairs : 1;
    for (std::size_t i = 0; i < rotation->pairs; ++i) {
        const double cos = rotation->cosine[position * rotation->pairs + i],
                     sin = rotation->sine[position * rotation->pairs + i];
        const double of_cos = square_of_half(type_, cos), of_sin = square_of_half(type_, sin);
        const std::size_t one = i * step, other = one + apart;
        for (const auto& [to, with_cos, with_sin] :
             {std::array{one, one, other}, std::array{other, other, one}}) {
            const double x = plain[with_cos], y = plain[with_sin];
            // Its own error before the rotation becomes that of both.
            variance[to] += square(cos) * of_plain[with_cos] - of_plain[to] +
                            square(sin) * of_plain[with_sin] + square(x) * of_cos +
                            square(y) * of_sin + square_of_half(type_, x * cos) +
                            square_of_half(type_, y * sin) + square_of_half(type_, made[to]);
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
            c_.rope.pairs ? shared_.rotation(c_.rope, Tensor::key, batch, c_.rope.key_times)
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

void Candidate::add_noise_of_steps(const QueryRow& q, const NoisyRow& noisy, const RowsView& values,
                                   const double* o, NoiseDetail detail, double* variance) {
    const std::size_t columns = values.columns;
    if (!noisy.is_known) {
        std::fill_n(variance, columns, HUGE_VAL);
        return;
    }
    std::vector<CellSums> plain(columns), centred(columns), scores(columns);
    std::vector<double> from_keys(columns), from_query(columns), slopes(columns);
    const std::vector<double> zeros(columns, 0);
    for (std::size_t at = 0; at < noisy.keys.size(); ++at) {
        const NoisyKey& one = noisy.keys[at];
        const double* const v = one.key < values.rows ? values.at(one.key) : zeros.data();
        const bool ends = noisy.ends_cell(at);
        for (std::size_t i = 0; i < columns; ++i) {
            const double x = v[i], y = x - o[i];
            plain[i].add(one.weight * x);
            centred[i].add(one.weight * y);
            scores[i].add(one.score * y);
            from_keys[i] += one.of_key * y * y;
            from_query[i] += one.of_query * y * y;
            for (CellSums* const sums : {&plain[i], &centred[i], &scores[i]})
                if (ends) sums->end_cell();
        }
    }
    if (noisy.slope_error != 0)
        for (const NoisyKey& one : noisy.keys) {
            if (one.key >= values.rows) continue;
            const double* const v = values.at(one.key);
            const double error = one.p * noisy.slope_error * alibi_distance(q, one.key);
            for (std::size_t i = 0; i < columns; ++i) slopes[i] += error * (v[i] - o[i]);
        }
    if (detail == NoiseDetail::all) add_probes(q, noisy, values, o, from_query);
    for (std::size_t i = 0; i < columns; ++i)
        variance[i] += std::max(plain[i].larger(), centred[i].larger()) + scores[i].larger() +
                       from_keys[i] + from_query[i] + square(slopes[i]);
}

/// An error of the query moves the scores of all keys, which may be alike in the same way as their
/// values are: the mean over random signs of its elements' errors, where that is larger.
void Candidate::add_probes(const QueryRow& q, const NoisyRow& noisy, const RowsView& values,
                           const double* o, std::vector<double>& from_query) {
    const RowsView keys = joined(Tensor::key, q.at.batch, kv_head_of(q.at.head));
    const std::size_t columns = values.columns, width = keys.columns;
    std::vector<double> moved(probe_count * columns, 0), signed_error(probe_count * width);
    const std::uint64_t seed = (q.at.batch * plan_.heads + q.at.head) * plan_.q_len + q.at.row;
    for (std::size_t e = 0; e < width; ++e) {
        const std::uint64_t bits = random_bits(seed * width + e + 1);
        for (std::size_t probe = 0; probe < probe_count; ++probe)
            signed_error[probe * width + e] = ((bits >> probe) & 1U) != 0
                                                  ? std::sqrt(noisy.of_query[e])
                                                  : -std::sqrt(noisy.of_query[e]);
    }
    for (const NoisyKey& one : noisy.keys) {
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
