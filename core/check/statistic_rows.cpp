// Arrays by query and key, statistics of rows and of keys: from scores and weights.
#include <cstdlib>
#include <numbers>

#include "core/check/evaluate.hpp"

namespace attn {
namespace {

/// The keys of a row that count, those of larger scores first; of equal ones, the lower key.
std::vector<std::size_t> ranked_keys(const QueryRow& q, std::size_t count) {
    std::vector<std::size_t> keys;
    for (std::size_t k = 0; k < q.scores.value.size(); ++k)
        if (q.scores.value[k] != no_score && q.is_allowed[k] != 0) keys.push_back(k);
    const auto is_larger = [&](std::size_t a, std::size_t b) {
        const double x = q.scores.value[a], y = q.scores.value[b];
        if (std::isnan(x) != std::isnan(y)) return std::isnan(x);
        return x != y && !std::isnan(x) ? x > y : a < b;
    };
    const std::size_t listed = std::min(count, keys.size());
    std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(listed), keys.end(),
                      is_larger);
    return keys;
}

/// Whether the errors leave open which of the scores is larger.
bool may_swap(const QueryRow& q, std::size_t a, std::size_t b) {
    const double apart = std::abs(q.scores.value[a] - q.scores.value[b]);
    return !(apart > q.scores.error(a) + q.scores.error(b));
}

double distance_of(std::size_t a, std::size_t b) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b));
}

}  // namespace

void Candidate::fill_score(ArrayId array, const RowIndex& at) {
    const QueryRow& q = scored(at);
    KeyNumbers taken;
    const KeyNumbers* shown = &q.raw;
    if (array == "biased_scores") {
        shown = &q.scores;
    } else if (array == "scaled_scores" || array == "capped_scores") {
        take_stages(q, taken, array == "scaled_scores" ? ScoreStage::scale : ScoreStage::softcap);
        shown = &taken;
    }
    reset(answer_, q.raw.value.size());
    for (std::size_t k = 0; k < answer_.value.size(); ++k) {
        if (array == "masked_scores" && q.is_allowed[k] == 0) {
            answer_.value[k] = no_score;
            continue;
        }
        answer_.value[k] = shown->value[k];
        const bool may_be_left_out = array == "masked_scores" && plan_.config.top_k &&
                                     with_errors_ && q.scores.error(k) == HUGE_VAL;
        if (with_errors_)
            answer_.error[k] =
                shown->overflows[k] != 0 || may_be_left_out ? HUGE_VAL : shown->error(k);
    }
}

void Candidate::fill_mask(ArrayId array, const RowIndex& at) {
    const QueryRow& q = scored(at);
    const double factor = c_.drops && c_.rescales_dropout ? problem_.kept_weight : 1;
    reset(answer_, plan_.kv_len);
    for (std::size_t k = 0; k < plan_.kv_len; ++k) {
        const bool is_kept = !c_.drops || kept_of(q, k) != 0;
        const double x =
            array == "mask" ? static_cast<double>(q.is_allowed[k]) : (is_kept ? factor : 0);
        answer_.value[k] = x;
        if (!with_errors_) continue;
        answer_.error[k] = 2 * model_.of_operand(x);
        if (plan_.config.top_k && q.is_allowed[k] != 0 && q.scores.error(k) == HUGE_VAL)
            answer_.error[k] = 1;  // it may be among the highest
    }
}

void Candidate::fill_masked_weight(ArrayId, const RowIndex& at) {
    QueryRow q = scored(at);
    softmax_of_keys(q, nullptr, true);
    mask_weights(q, false);
    answer_ = std::move(q.weight);
}

void Candidate::fill_weight(ArrayId array, const RowIndex& at) {
    const bool is_final = array == "attention_weights";
    if (is_final && plan_.shown.averages(array)) return fill_averaged(at);
    const QueryRow& q = weighed(at);
    answer_ = q.weight;
    if (!is_final) return;
    for (std::size_t k = 0; k < answer_.value.size(); ++k) {
        const double x = answer_.value[k] = dropped(q, k, answer_.value[k]);
        if (!with_errors_) continue;
        for (std::vector<double>* const errors : {&answer_.error, &answer_.below}) {
            if (errors->empty()) continue;
            double& error = (*errors)[k];
            error = dropped(q, k, error);
            if (c_.drops) error = model_.stored(x, error + 2 * model_.unit() * x);
        }
    }
}

std::vector<std::size_t> Candidate::averaged_heads() const {
    std::vector<std::size_t> heads = plan_.shown.heads;
    for (std::size_t h = 0; h < plan_.heads && plan_.shown.heads.empty(); ++h) heads.push_back(h);
    return heads;
}

/// The mean over the chosen heads.
void Candidate::fill_averaged(const RowIndex& at) {
    const std::vector<std::size_t> heads = averaged_heads();
    reset(answer_, plan_.kv_len);
    for (const std::size_t head : heads) {
        const QueryRow& q = weighed({at.batch, head, at.row});
        for (std::size_t k = 0; k < plan_.kv_len; ++k) {
            const double w = dropped(q, k, q.weight.value[k]);
            answer_.value[k] += w;
            if (with_errors_)
                answer_.error[k] += dropped(q, k, q.weight.bound(k)) + 2 * model_.rounding(w);
        }
    }
    const double count = static_cast<double>(heads.size());
    for (double& x : answer_.value) x /= count;
    for (std::size_t k = 0; k < answer_.error.size(); ++k)
        answer_.error[k] = answer_.error[k] / count + (model_.gamma(heads.size()) + model_.unit()) *
                                                          std::abs(answer_.value[k]);
}

/// What is given as the logsumexp of a row.
Bounded Candidate::stated_sum(const QueryRow& q) const {
    Bounded x = q.logsumexp;
    const double sink = sink_of_head(q.at.head);
    double most = sink, products = 0;
    for (const double score : q.scores.value) most = std::max(most, score);
    for (const double product : q.raw.value) products += c_.scale * product;
    switch (c_.stated_sum) {
        case StatedSum::logsumexp: break;
        case StatedSum::without_max: x.value -= most; break;
        case StatedSum::max_and_log2:
            x.value = most + (x.value - most) * std::numbers::log2e;
            break;
        case StatedSum::smoothed: x.value -= products / static_cast<double>(plan_.kv_len); break;
        case StatedSum::without_sink: x.value += std::log1p(-std::exp(sink - x.value)); break;
        case StatedSum::max: x.value = most; break;
        case StatedSum::sum: x.value = std::exp(x.value); x.error *= x.value;
    }
    x.value = c_.log_factor * (x.value + std::log(c_.sum_factor));
    x.error = 4 * (std::abs(c_.log_factor) * x.error + model_.rounding(most) +
                   model_.rounding(x.value) + model_.rounding(c_.log_factor));
    return x;
}

void Candidate::fill_statistic(ArrayId array, const RowIndex& at) {
    const QueryRow& q = weighed(at);
    const std::vector<double>& weight = q.weight.value;
    const std::size_t count = weight.size();
    const bool is_own =
        c_.stated_sum == StatedSum::logsumexp && c_.sum_factor == 1 && c_.log_factor == 1;
    Bounded x = is_own ? q.logsumexp : stated_sum(q);
    if (array != "logsumexp") {
        x = {};
        const auto position = static_cast<double>(position_of(q, c_.band.offset));
        const bool is_entropy = array == "entropy";
        const auto amount = [&](std::size_t k) {
            return is_entropy ? -std::log(weight[k]) : std::abs(static_cast<double>(k) - position);
        };
        double sizes = 0, largest_score = 0;
        bool has_key = false;
        for (std::size_t k = 0; k < count; ++k) {
            const double w = weight[k];
            if (w != 0) x.value += w * amount(k);
            if (!with_errors_) continue;
            const double of_weight = q.weight.bound(k);
            if (w != 0) {
                has_key = true;
                sizes += w * std::abs(amount(k));
                // The entropy's derivative by a weight is that of w ln w.
                x.error += of_weight * (amount(k) + (is_entropy ? 1 : 0));
                largest_score = std::max(largest_score, std::abs(q.scores.value[k]));
            } else if (of_weight != 0) {
                x.error +=
                    of_weight * (is_entropy ? 1 - std::log(std::min(of_weight, 1.0)) : amount(k));
            }
        }
        // Programs have ln w as the difference of a score and the logsumexp.
        if (is_entropy && has_key) sizes += 4 * (largest_score + std::abs(q.logsumexp.value));
        x.error += model_.gamma(count + 4) * sizes;
    }
    reset(answer_, 1);
    answer_.value[0] = x.value;
    if (with_errors_) answer_.error[0] = model_.stored(x.value, x.error);
}

/// The indices or the weights of the keys with the largest scores, or the largest score.
void Candidate::fill_top(ArrayId array, const RowIndex& at) {
    const QueryRow& q = weighed(at);
    const bool is_score = array == "max_score", is_first = is_score || array == "argmax_key",
               lists_keys = array == "argmax_key" || array == "top_keys";
    const std::size_t count = is_first ? 1 : plan_.top;
    const std::vector<std::size_t> keys = ranked_keys(q, count);
    reset(answer_, count);
    for (std::size_t i = 0; i < count; ++i) {
        double &value = answer_.value[i], &error = answer_.error[i];
        if (i >= keys.size()) {
            value = lists_keys ? -1 : is_score ? no_score : 0;
            continue;
        }
        const std::size_t key = keys[i];
        value = lists_keys ? static_cast<double>(key)
                           : (is_score ? q.scores.value : q.weight.value)[key];
        if (!with_errors_) continue;
        for (const std::size_t k : keys)
            if (may_swap(q, k, key))
                error = std::max(error, lists_keys ? distance_of(k, key)
                                        : is_score ? q.scores.error(k)
                                                   : q.weight.bound(k));
        if (is_score) error = model_.stored(value, error);
    }
}

/// The sum or the largest of the weights of each key, over the queries that are computed.
void Candidate::fill_by_key(ArrayId array, const RowIndex& at) {
    const bool adds = array == "key_mass";
    reset(answer_, plan_.kv_len);
    for (std::size_t row = 0; row < plan_.rows; ++row) {
        const QueryRow& q = weighed({at.batch, at.head, row});
        for (std::size_t k = 0; k < plan_.kv_len; ++k) {
            const double w = q.weight.value[k];
            double& value = answer_.value[k];
            value = adds ? value + w : w > value || std::isnan(w) ? w : value;
            if (!with_errors_) continue;
            double& error = answer_.error[k];
            error = adds ? error + q.weight.bound(k) : std::max(error, q.weight.bound(k));
        }
    }
    for (std::size_t k = 0; k < answer_.error.size() && adds; ++k)
        answer_.error[k] = model_.stored(
            answer_.value[k], answer_.error[k] + model_.gamma(plan_.rows) * answer_.value[k]);
}

}  // namespace attn
