// The weights of one query from its scores.
#include <limits>

#include "core/check/evaluate.hpp"

namespace attn {
namespace {

/// The bound of |w e^x - w| over all |x| up to `error`, for a weight w = e^exponent of at most 1,
/// which may have underflowed.
double grown(double weight, double exponent, double error) {
    if (error < 1) return weight * std::expm1(error);
    return std::exp(std::min(exponent + error, 0.0)) + weight;
}

/// What the scale multiplies, of the largest score; 0 if that is the sink's.
double scaled_at(const KeyNumbers& scores, double largest_score) {
    if (scores.scaled.empty()) return 0;
    const auto found = std::find(scores.value.begin(), scores.value.end(), largest_score);
    if (found == scores.value.end()) return 0;
    return scores.scaled[static_cast<std::size_t>(found - scores.value.begin())];
}

}  // namespace

double Candidate::sink_of_head(std::size_t head) const {
    if (c_.softmax_plus > 0) return std::log(c_.softmax_plus);
    if (c_.sink.empty()) return no_score;
    return c_.sink[c_.sink.size() == 1 ? 0 : head];
}

/// Programs may fold log2(e) into the scores for exp2, and subtract the maximum of a part of the
/// keys first, or the one of all. Smaller types than float32 are not folded in, and hold at
/// most two differences.
void Candidate::exponent_errors(QueryRow& q, double shift) const {
    const KeyNumbers& scores = q.scores;
    const std::size_t count = scores.value.size();
    q.independent.assign(count, 0);
    q.common.assign(count, 0);
    const double reference = scaled_at(scores, shift);
    for (std::size_t k = 0; k < count; ++k) {
        const double x = scores.value[k];
        if (!std::isfinite(x)) continue;
        const double own = std::abs(x) <= std::numeric_limits<double>::max() / 4
                               ? model_.fine_unit() * std::abs(x) +
                                     model_.unit() * (2 * std::abs(x - shift) + 4) +
                                     2 * model_.fine_unit() * std::abs(x - shift)
                               : HUGE_VAL;
        const double of_factor =
            scores.scaled.empty() ? 0 : scores.factor_error(scores.scaled[k] - reference);
        q.independent[k] = scores.independent[k] + own + of_factor;
        q.common[k] = scores.common[k];
    }
}

void Candidate::weigh(QueryRow& q) {
    const bool renormalizes = c_.blocking == Blocking::renormalize,
               sums_keys = c_.axis == SoftmaxAxis::keys;
    // The logsumexp is that of the row, whichever the axis.
    softmax_of_keys(q, nullptr, true);
    if (!sums_keys) softmax_of_columns(q);
    if (renormalizes && sums_keys)
        renormalize(q);
    else if (c_.blocking != Blocking::before)
        mask_weights(q, renormalizes);
    if (c_.weights) {
        q.weight = {1, q.scores.value.size(), q.scores.value, {}};
        for (std::size_t k = 0; k < q.weight.columns; ++k) {
            if (q.is_allowed[k] == 0) q.weight.value[k] = 0;
            q.weight.error.push_back(with_errors_ ? q.scores.error(k) : 0);
        }
        modify_weights(q, *c_.weights);
        mask_weights(q, c_.sums_to_one);
        q.independent.assign(q.independent.size(), 0);
        q.common.assign(q.common.size(), 0);
    }
    if (c_.prob_mod) {
        q.softmax = q.weight;
        modify_weights(q, plan_.config.prob_mod);
    }
    if (!rounds(c_, Rounded::weights)) return;
    q.weight.below.clear();
    round_rows(c_, Rounded::weights, q.weight);
}

/// To divide by the sum of the allowed keys is the softmax over those.
void Candidate::renormalize(QueryRow& q) {
    const std::vector<double> of_all = q.weight.value, errors_of_all = q.independent;
    const Bounded logsumexp = q.logsumexp;
    softmax_of_keys(q, &q.is_allowed, false);
    q.logsumexp = logsumexp;
    q.weight.below.clear();
    if (!with_errors_) return;
    const std::size_t count = of_all.size();
    double total = 0, least = 0;
    // The maximum of all keys and the sink, which is subtracted, may be far larger.
    double more = 0;
    for (std::size_t k = 0; k < count; ++k) {
        if (q.is_allowed[k] == 0) continue;
        total += of_all[k];
        least += model_.least_power();
        more = std::max(more, errors_of_all[k] - q.independent[k]);
    }
    // What underflows in the softmax over all keys is missing afterwards.
    const double lost = std::min(1.0, least / std::max(total, 0x1p-1022));
    for (std::size_t k = 0; k < count; ++k) {
        if (q.is_allowed[k] == 0) continue;
        const double w = q.weight.value[k];
        q.weight.error[k] = std::min(
            1.0, q.weight.error[k] + w * std::expm1(2 * more) + lost + 3 * model_.rounding(w));
        q.independent[k] += more;
        // As an error of the exponent; all of it may be lost.
        constexpr double of_all_lost = 64;
        const double part = model_.least_power() / std::max(of_all[k], 0x1p-1022);
        q.independent[k] += part < 1 ? -std::log1p(-part) : of_all_lost;
    }
}

void Candidate::softmax_of_keys(QueryRow& q, const std::vector<char>* counts, bool with_sink) {
    const std::vector<double>& x = q.scores.value;
    const std::size_t count = x.size();
    double sink = with_sink ? sink_of_head(q.at.head) : no_score;
    const auto is_in = [&](std::size_t k) {
        return (counts == nullptr || (*counts)[k] != 0) && x[k] != no_score;
    };
    double shift = sink;
    if (c_.sink_from_max) shift = no_score;
    bool has_nan = false;
    for (std::size_t k = 0; k < count; ++k) {
        if (!is_in(k)) continue;
        if (std::isnan(x[k])) has_nan = true;
        shift = std::max(shift, x[k]);
    }
    if (has_nan) shift = std::numeric_limits<double>::quiet_NaN();
    reset(q.weight, count);
    if (shift == no_score) {
        if (c_.empty_rows_are_nan)
            q.weight.value.assign(count, std::numeric_limits<double>::quiet_NaN());
        q.logsumexp = {no_score, 0};
        q.sink_weight = 0;
        q.independent.assign(with_errors_ ? count : 0, 0);
        q.common = q.independent;
        return;
    }
    if (c_.sink_from_max && with_sink) sink = sink == no_score ? shift : sink + shift;
    shift = std::max(shift, sink);
    double sum = sink == no_score ? 0 : std::exp(sink - shift);
    const double sink_part = sum;
    for (std::size_t k = 0; k < count; ++k) {
        if (!is_in(k)) continue;
        q.weight.value[k] = std::exp(x[k] - shift);
        sum += q.weight.value[k];
    }
    for (double& weight : q.weight.value) weight /= sum;
    q.logsumexp.value = shift + std::log(sum);
    if (!with_errors_) return;
    exponents_.resize(count);
    for (std::size_t k = 0; k < count; ++k)
        exponents_[k] = is_in(k) ? x[k] - q.logsumexp.value : no_score;
    exponent_errors(q, shift);
    const double of_shift = q.scores.factor_error(scaled_at(q.scores, shift));
    double more = 0;
    q.sink_weight = sink_part / sum;
    if (sink_part != 0) {
        const double sink_error =
            of_shift + model_.unit() * (4 * std::abs(sink) + 4 * std::abs(sink - shift) + 4);
        more = q.sink_weight * std::expm1(std::min(sink_error, 700.0));
    }
    q.sink_error = more;
    set_weight_errors(q, more);
    q.logsumexp.error += of_shift;
}

/// The sum of the exponentials changes by at most the mean of what each grows by, under the
/// weights; errors that are independent add up as the root of their squares.
void Candidate::set_weight_errors(QueryRow& q, double more) {
    const std::vector<double>& weight = q.weight.value;
    const std::size_t count = weight.size();
    double linear = 0, squares = 0, common = 0, largest = 0;
    std::size_t heaviest = 0;
    for (std::size_t k = 0; k < count; ++k) {
        const double w = weight[k];
        if (exponents_[k] == no_score) continue;
        const double all = q.independent[k] + q.common[k], growth = growth_of(all);
        const double by_itself = all < 1 ? w * std::expm1(all) : std::exp(exponents_[k] + all);
        linear += by_itself;
        common += std::isfinite(growth) ? w * growth * q.common[k] : by_itself;
        const double own = std::isfinite(growth) ? w * growth * q.independent[k] : 0;
        squares += own * own;
        largest = std::max(largest, exponents_[k] + all);
        if (w > weight[heaviest]) heaviest = k;
    }
    double of_sum = linear;
    const double likely = common + spread_of_sums(count) * std::sqrt(squares);
    // A sum that is smaller by a part x has a logarithm that is smaller by -log(1 - x).
    if (likely < 0.5) of_sum = std::min(linear, likely / (1 - likely));
    const double of_heaviest = q.independent[heaviest] + q.common[heaviest];
    const double rounding = model_.gamma(count + 3) + 2 * model_.unit();
    const double of_all =
        std::min(std::log1p(of_sum + more),
                 std::max(largest, of_heaviest) + std::log(static_cast<double>(count + 1)));
    q.logsumexp.error = of_all + rounding + 4 * model_.rounding(q.logsumexp.value);
    std::vector<double>&above = q.weight.error, &below = q.weight.below;
    below.assign(count, 0);
    bool is_small = true;
    for (std::size_t k = 0; k < count; ++k) {
        const double w = weight[k], all = q.independent[k] + q.common[k] + of_all;
        if (exponents_[k] == no_score) continue;
        above[k] = all < 1 ? w * std::expm1(all) : std::exp(std::min(exponents_[k] + all, 0.0));
        below[k] = -w * std::expm1(-all);
        is_small = is_small && all < 0x1p-10;
    }
    if (!is_small) limit_weight_errors(q, more);
    // What the heaviest weight gains, the others and the sink lose.
    double gained = q.sink_weight * std::expm1(of_all) + more * std::exp(of_all),
           lost = q.sink_weight;
    for (std::size_t k = 0; k < count; ++k) {
        if (k == heaviest) continue;
        gained += above[k];
        lost += below[k];
    }
    above[heaviest] = std::min(above[heaviest], lost);
    below[heaviest] = std::min(below[heaviest], gained);
    for (std::size_t k = 0; k < count; ++k) {
        if (exponents_[k] == no_score) continue;
        const double w = weight[k];
        const double own =
            rounding * std::min(w + above[k], 1.0) + model_.rounding(w) + model_.least_power();
        above[k] = std::min(above[k] + own, 1.0);
        below[k] = std::min(below[k] + own, 1.0);
    }
}

/// Limits them to what the weight becomes if its own score is as large as it may be and those of
/// the others are as small, or the other way round: w / (w + the sum of the others).
void Candidate::limit_weight_errors(QueryRow& q, double more) const {
    const std::size_t count = q.weight.value.size();
    for (const bool grows : {true, false}) {
        const double sign = grows ? 1 : -1;
        // Of the others' exponents.
        const auto exponent = [&](std::size_t k) {
            return exponents_[k] - sign * (q.independent[k] + q.common[k]);
        };
        const double of_sink = std::log(std::max(q.sink_weight - sign * more, 0.0));
        double shift = no_score, second = of_sink;
        std::size_t first = 0;
        for (std::size_t k = 0; k < count; ++k) {
            if (exponent(k) > shift) {
                second = std::max(second, shift);
                shift = exponent(k);
                first = k;
            } else {
                second = std::max(second, exponent(k));
            }
        }
        const auto part = [](double x, double of) { return x == no_score ? 0 : std::exp(x - of); };
        double without_first = part(of_sink, second);
        for (std::size_t k = 0; k < count; ++k)
            if (k != first) without_first += part(exponent(k), second);
        const double sum = 1 + without_first * part(second, shift);
        for (std::size_t k = 0; k < count; ++k) {
            if (exponents_[k] == no_score) continue;
            const double others = k == first ? second + std::log(without_first)
                                             : shift + std::log(sum - part(exponent(k), shift));
            const double own = exponents_[k] + sign * (q.independent[k] + q.common[k]);
            const double limit = 1 / (1 + std::exp(others - own));
            double& error = (grows ? q.weight.error : q.weight.below)[k];
            error = std::min(error, std::max(sign * (limit - q.weight.value[k]), 0.0) + 0x1p-50);
        }
    }
}

/// Sets weights of masked keys to 0 and, if asked to, divides by the sum of the others.
void Candidate::mask_weights(QueryRow& q, bool renormalizes) const {
    std::vector<double>&weight = q.weight.value, &error = q.weight.error;
    q.weight.below.clear();
    double total = 0, total_error = 0;
    for (std::size_t k = 0; k < weight.size(); ++k) {
        if (q.is_unblocked[k] == 0) weight[k] = error[k] = 0;
        total += weight[k];
        total_error += error[k];
    }
    if (!renormalizes || total == 0) return;
    const double relative = total_error / total + model_.gamma(weight.size() + 2);
    for (std::size_t k = 0; k < weight.size(); ++k) {
        error[k] = (error[k] + weight[k] * relative) / total + model_.least();
        weight[k] /= total;
    }
}

/// Weights of excluded keys stay 0.
void Candidate::modify_weights(QueryRow& q, const Expression& formula) const {
    apply_formula(formula, q, q.weight);
    for (std::size_t k = 0; k < q.weight.value.size(); ++k) {
        if (q.is_allowed[k] == 0) q.weight.value[k] = 0;
        if (!with_errors_) continue;
        const double own = model_.rounding(q.weight.value[k]);
        for (std::vector<double>* const error : {&q.weight.error, &q.weight.below})
            (*error)[k] = q.is_allowed[k] == 0 ? 0 : (*error)[k] + own;
    }
}

const Candidate::ColumnSums& Candidate::column_sums(const QueryRow& q) {
    const bool over_queries = c_.axis == SoftmaxAxis::queries,
               over_heads = c_.axis == SoftmaxAxis::heads,
               over_batch = c_.axis == SoftmaxAxis::batch;
    const std::size_t terms = over_queries ? plan_.rows : over_heads ? plan_.heads : plan_.batch;
    if (columns_.empty()) columns_.resize(plan_.batch * plan_.heads * plan_.rows / terms);
    const std::size_t index = over_queries ? q.at.batch * plan_.heads + q.at.head
                              : over_heads ? q.at.batch * plan_.rows + q.at.row
                                           : q.at.head * plan_.rows + q.at.row;
    std::unique_ptr<ColumnSums>& made = columns_[index];
    if (made) return *made;
    const std::size_t count = plan_.kv_len;
    std::vector<QueryRow> all(terms);
    for (std::size_t i = 0; i < terms; ++i) {
        all[i].at = {over_batch ? i : q.at.batch, over_heads ? i : q.at.head,
                     over_queries ? i : q.at.row};
        score(all[i]);
    }
    made = std::make_unique<ColumnSums>();
    made->shift.assign(count, no_score);
    made->sum.assign(count, 0);
    made->error.assign(count, 0);
    for (std::size_t k = 0; k < count; ++k) {
        double &shift = made->shift[k], &sum = made->sum[k];
        for (const QueryRow& row : all)
            shift = std::max({shift, row.scores.value[k], sink_of_head(row.at.head)});
        if (shift == no_score) continue;
        for (const QueryRow& row : all) {
            sum += std::exp(row.scores.value[k] - shift);
            // A head's sink counts once.
            if (over_heads || (over_queries ? row.at.row : row.at.batch) == 0)
                sum += std::exp(sink_of_head(row.at.head) - shift);
        }
        if (!with_errors_ || sum == 0) continue;
        double error = 0;
        for (const QueryRow& row : all) {
            const double x = row.scores.value[k], exponent = x - shift - std::log(sum);
            if (x != no_score)
                error += grown(std::exp(exponent), exponent,
                               row.scores.independent[k] + row.scores.common[k] +
                                   model_.unit() * (3 * std::abs(x) + 4 * std::abs(x - shift) + 4));
        }
        made->error[k] = error;
    }
    for (double& error : made->error) error = std::log1p(error) + model_.gamma(terms + 3);
    return *made;
}

void Candidate::softmax_of_columns(QueryRow& q) {
    const ColumnSums& sums = column_sums(q);
    reset(q.weight, q.scores.value.size());
    for (std::size_t k = 0; k < q.weight.value.size(); ++k) {
        const double x = q.scores.value[k];
        if (with_errors_) q.independent[k] = q.common[k] = 0;
        if (x == no_score) continue;
        const double w = std::exp(x - sums.shift[k]) / sums.sum[k];
        q.weight.value[k] = w;
        if (!with_errors_) continue;
        q.independent[k] = q.scores.independent[k] +
                           model_.unit() * (3 * std::abs(x) + 4 * std::abs(x - sums.shift[k]) + 4);
        q.common[k] = q.scores.common[k] + sums.error[k];
        const double error =
            grown(w, x - sums.shift[k] - std::log(sums.sum[k]), q.independent[k] + q.common[k]) +
            model_.rounding(w) + model_.least_power();
        q.weight.error[k] = w <= 1 ? std::min(error, 1.0) : error;
    }
}

double Candidate::kept_of(const QueryRow& q, std::size_t key) const {
    const std::vector<char>& kept = c_.dropout_draws == 0
                                        ? problem_.dropout_kept
                                        : problem_.other_dropouts[c_.dropout_draws - 1].kept;
    if (kept.empty()) return 1;
    const std::size_t at =
        ((q.at.batch * plan_.heads + q.at.head) * plan_.rows + q.at.row) * plan_.kv_len + key;
    return (kept[at] != 0) != (c_.flipped == at) ? 1 : 0;
}

/// A weight or its error after dropout and the factor of weights.
double Candidate::dropped(const QueryRow& q, std::size_t key, double x) const {
    x *= c_.weight_factor;
    if (!c_.drops || is_linear_) return x;
    if (kept_of(q, key) == 0) return std::isnan(x) ? x : 0;
    return c_.rescales_dropout ? x * problem_.kept_weight : x;
}

}  // namespace attn
