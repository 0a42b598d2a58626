// The variance of the errors of arrays other than the outputs of heads; see noise_row.cpp.
#include "core/check/evaluate.hpp"

namespace attn {
namespace {

/// Of one number of each key.
struct SumsOfCells : CellSums {
    std::vector<double> of_cell;  ///< for each key

    SumsOfCells(const NoisyRow& noisy, double NoisyKey::*number) : of_cell(noisy.keys.size()) {
        std::size_t first = 0;
        for (std::size_t i = 0; i < noisy.keys.size(); ++i) {
            add(noisy.keys[i].*number);
            if (!noisy.ends_cell(i)) continue;
            for (; first <= i; ++first) of_cell[first] = sum;
            end_cell();
        }
    }
    /// The square of the i-th key's number x less p times the sum of all, in either case.
    double less_share(std::size_t i, double x, double p) const {
        return std::max(square(x - p * of_cell[i]) + square(p) * (together - square(of_cell[i])),
                        square(x - p * x) + square(p) * (apart - square(x)));
    }
};

}  // namespace

/// What the errors of a query, of keys and of the slope of ALiBi do to the logsumexp.
struct Candidate::KeyMeans {
    std::vector<double> key;  ///< its derivative by each element of the query
    double of_key = 0;        ///< the sum over the keys
    double distance = 0;      ///< the mean that the slope multiplies
};

Candidate::KeyMeans Candidate::key_means(const QueryRow& q, const NoisyRow& noisy,
                                         const RowsView& keys) const {
    KeyMeans means{std::vector<double>(keys.columns, 0)};
    for (const NoisyKey& one : noisy.keys) {
        means.of_key += one.of_key;
        if (one.key == keys.rows) continue;
        const double factor = std::sqrt(one.factor);
        for (std::size_t e = 0; e < keys.columns; ++e) means.key[e] += factor * keys.at(one.key)[e];
        if (noisy.slope_error != 0) means.distance += one.p * alibi_distance(q, one.key);
    }
    return means;
}

/// Twice the variance of the weights of a query.
std::vector<double> Candidate::weight_variance(const QueryRow& q, NoiseDetail detail) {
    const std::vector<double>& weight = q.weight.value;
    std::vector<double> variance(weight.size());
    for (std::size_t k = 0; k < weight.size(); ++k) {
        // Programs may flush it to 0; otherwise the sum that it is divided by is rounded.
        const bool is_lost = weight[k] <= model_.least_power();
        variance[k] =
            square_of_half(type_, weight[k]) + square(is_lost ? weight[k] : type_.unit * weight[k]);
    }
    if (detail == NoiseDetail::storing) return variance;
    const RowsView keys = joined(Tensor::key, q.at.batch, kv_head_of(q.at.head));
    const NoisyRow noisy = noisy_row(q);
    if (!noisy.is_known) return std::vector<double>(weight.size(), HUGE_VAL);
    const KeyMeans mean = key_means(q, noisy, keys);
    const SumsOfCells weights(noisy, &NoisyKey::weight);
    const SumsOfCells scores(noisy, &NoisyKey::score);
    for (std::size_t i = 0; i < noisy.keys.size(); ++i) {
        const NoisyKey& one = noisy.keys[i];
        if (one.key == keys.rows) continue;
        double& to = variance[one.key];
        to += weights.less_share(i, one.weight, one.p) + scores.less_share(i, one.score, one.p) +
              std::max(0.0, one.of_key * (1 - 2 * one.p)) + square(one.p) * mean.of_key;
        const double factor = std::sqrt(one.factor);
        for (std::size_t e = 0; e < keys.columns; ++e)
            to += noisy.of_query[e] * square(factor * keys.at(one.key)[e] - one.p * mean.key[e]);
        if (noisy.slope_error != 0)
            to += square(one.p * noisy.slope_error * (alibi_distance(q, one.key) - mean.distance));
    }
    return variance;
}

void Candidate::add_noise_of_weights(ArrayId array, const RowIndex& at, NoiseDetail detail) {
    if (array != "attention_weights" || !plan_.shown.averages(array)) {
        const QueryRow& q = weighed(at);
        const std::vector<double> variance = weight_variance(q, detail);
        for (std::size_t k = 0; k < variance.size(); ++k)
            noise_.add(k, half_unit(type_, q.weight.value[k]), variance[k] / 2);
        return;
    }
    std::vector<double> mean(plan_.kv_len, 0), variance(plan_.kv_len, 0);
    const std::vector<std::size_t> heads = averaged_heads();
    const auto count = static_cast<double>(heads.size());
    for (const std::size_t head : heads) {
        const QueryRow& q = weighed({at.batch, head, at.row});
        const std::vector<double> of_head = weight_variance(q, detail);
        for (std::size_t k = 0; k < plan_.kv_len; ++k) {
            mean[k] += q.weight.value[k] / count;
            variance[k] += of_head[k] / square(count);
        }
    }
    for (std::size_t k = 0; k < plan_.kv_len; ++k) {
        const double h = half_unit(type_, mean[k]);
        // The mean is rounded; so is the sum, whose half unit divided by their number may be
        // larger.
        noise_.add(k, h, (variance[k] + 3 * square(h)) / 2);
    }
}

void Candidate::add_noise_of_logsumexp(const RowIndex& at, NoiseDetail detail) {
    const QueryRow& q = weighed(at);
    const double x = q.logsumexp.value, h = half_unit(type_, x);
    if (!std::isfinite(x)) return noise_.add(0, h, square(h));
    const double largest = *std::max_element(q.scores.value.begin(), q.scores.value.end());
    double variance = square(h) + square(type_.unit) + square_of_half(type_, x - largest);
    if (detail != NoiseDetail::storing) {
        const RowsView keys = joined(Tensor::key, at.batch, kv_head_of(at.head));
        const NoisyRow noisy = noisy_row(q);
        if (!noisy.is_known) return noise_.add(0, h, HUGE_VAL);
        const KeyMeans mean = key_means(q, noisy, keys);
        variance += SumsOfCells(noisy, &NoisyKey::weight).larger() +
                    SumsOfCells(noisy, &NoisyKey::score).larger() + mean.of_key +
                    square(noisy.slope_error * mean.distance);
        for (std::size_t e = 0; e < keys.columns; ++e)
            variance += noisy.of_query[e] * square(mean.key[e]);
    }
    noise_.add(0, h, variance / 2);
}

/// Some columns of the result of the output projection, and what it makes of each head's values
/// for these: (keys, columns).
struct Candidate::ProjectedColumns {
    std::size_t batch = 0;
    std::vector<std::size_t> columns;
    std::vector<BoundedRows> weight;  ///< (columns, d_v)
    std::vector<BoundedRows> values;
    std::vector<BoundedRows> rounded;  ///< twice the variance of rounding the values
};

/// An error of a weight changes all columns of a head together, so that it is propagated through
/// the projection. Of large results each block of rows does this for different columns only.
const Candidate::ProjectedColumns& Candidate::projected_columns(const RowIndex& at) {
    constexpr std::size_t column_limit = 64, work_limit = std::size_t{1} << 26U;
    const std::size_t d = plan_.d_v, d_out = plan_.d_out,
                      work = plan_.batch * plan_.rows * plan_.heads * plan_.kv_len * d_out,
                      blocks = work <= work_limit ? 1 : (d_out + column_limit - 1) / column_limit,
                      block = at.row * blocks / plan_.rows;
    std::shared_ptr<ProjectedColumns>& made = projected_columns_;
    if (made && made->batch == at.batch && made->columns.front() == block) return *made;
    made = std::make_shared<ProjectedColumns>();
    made->batch = at.batch;
    for (std::size_t c = block; c < d_out; c += blocks) made->columns.push_back(c);
    const std::size_t count = made->columns.size();
    const std::shared_ptr<const BoundedRows> all = shared_.weight(Tensor::out, c_);
    const bool rounds_values = problem_.projection[index_of(Tensor::value)].has_value();
    for (std::size_t head = 0; head < plan_.heads; ++head) {
        BoundedRows& weight = made->weight.emplace_back(count, d);
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t c = 0; c < d; ++c)
                weight.at(i)[c] = all->view().at(made->columns[i])[joined_column(head, c)];
        if (is_linear_) continue;
        const RowsView values = joined(Tensor::value, at.batch, kv_head_of(head));
        const std::size_t cached = values.rows - problem_.tokens(Tensor::value);
        BoundedRows& projected = made->values.emplace_back(values.rows, count);
        BoundedRows& rounded = made->rounded.emplace_back(rounds_values ? values.rows : 0, count);
        std::vector<double> squares(d);
        for (std::size_t k = 0; k < values.rows; ++k) {
            for (std::size_t i = 0; i < count; ++i)
                projected.at(k)[i] = inner_product(values.at(k), weight.at(i), d);
            if (!rounds_values || k < cached) continue;
            for (std::size_t c = 0; c < d; ++c) squares[c] = square_of_half(type_, values.at(k)[c]);
            for (std::size_t i = 0; i < count; ++i)
                for (std::size_t c = 0; c < d; ++c)
                    rounded.at(k)[i] += squares[c] * square(weight.at(i)[c]);
        }
    }
    return *made;
}

void Candidate::add_noise_of_output_projection(const RowIndex& at, NoiseDetail detail) {
    const ProjectedColumns& made = projected_columns(at);
    const std::size_t count = made.columns.size(), d = plan_.d_v;
    std::vector<double> result(count, 0), variance(count, 0), of_head(count), output(count);
    double floor = 0;
    for (std::size_t head = 0; head < plan_.heads; ++head) {
        QueryRow& q = answered(joined_from(at, head));
        const std::vector<double>& o = q.output.value;
        const RowsView weight = made.weight[head].view();
        std::vector<double> of_columns(d);
        for (std::size_t c = 0; c < d; ++c) of_columns[c] = square_of_half(type_, o[c]);
        if (detail != NoiseDetail::storing && is_linear_) add_noise_of_states(q, of_columns.data());
        std::fill(of_head.begin(), of_head.end(), 0);
        for (std::size_t i = 0; i < count; ++i) {
            double apart = 0, sizes = 0;
            output[i] = inner_product(o.data(), weight.at(i), d);
            for (std::size_t c = 0; c < d; ++c) {
                of_head[i] += of_columns[c] * square(weight.at(i)[c]);
                apart += square(o[c] * weight.at(i)[c]);
                sizes += std::abs(o[c] * weight.at(i)[c]);
            }
            // Numerators or the normaliser may be rounded separately.
            of_head[i] += square(type_.unit) * std::max(apart, square(output[i]));
            floor = std::max(floor, of_float32_sums * sizes);
            result[i] += output[i];
        }
        if (detail != NoiseDetail::storing && !is_linear_) {
            const RowsView values = made.values[head].view();
            add_noise_of_steps(q, noisy_row(q), values, output.data(), detail, of_head.data());
            if (made.rounded[head].rows != 0) {
                const std::vector<double> shared = shared_weights(q);
                for (std::size_t k = 0; k < values.rows; ++k)
                    for (std::size_t i = 0; i < count && shared[k] > 0; ++i)
                        of_head[i] += square(shared[k]) * made.rounded[head].view().at(k)[i];
            }
        }
        for (std::size_t i = 0; i < count; ++i) variance[i] += of_head[i];
    }
    const std::vector<double>& bias = problem_.projection[index_of(Tensor::out)]->bias;
    for (std::size_t i = 0; i < count; ++i) {
        const double product = result[i];
        if (c_.adds_bias[index_of(Tensor::out)] && !bias.empty())
            result[i] += bias[made.columns[i]];
        const double h = half_unit(type_, result[i]);
        variance[i] += square(h) + (result[i] == product ? 0 : square_of_half(type_, product));
        noise_.add(made.columns[i], h, variance[i] / 2 + square(floor));
    }
    noise_.floor = floor;
}

}  // namespace attn
