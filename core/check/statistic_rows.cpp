// Arrays by query and key, statistics of rows and of keys: from scores and weights.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/check/candidate_state.hpp"

namespace attn::check_detail {
namespace {

constexpr double no_score = -std::numeric_limits<double>::infinity();

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

double score_error(const QueryRow& q, std::size_t key) {
    return q.scores.error(key);
}

/// Whether the errors leave open which of the scores is larger.
bool may_swap(const QueryRow& q, std::size_t a, std::size_t b) {
    const double apart = std::abs(q.scores.value[a] - q.scores.value[b]);
    return !(apart > score_error(q, a) + score_error(q, b));
}

double distance_of(std::size_t a, std::size_t b) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b));
}

}  // namespace

void State::fill_score(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    const QueryRow& q = scored(batch, head, row);
    KeyNumbers taken;
    const KeyNumbers* shown = &q.raw;
    if (array == "biased_scores") {
        shown = &q.scores;
    } else if (array == "scaled_scores" || array == "capped_scores") {
        take_stages(q, taken, array == "scaled_scores" ? ScoreStage::scale : ScoreStage::softcap);
        shown = &taken;
    }
    const std::size_t count = q.raw.value.size();
    start(count);
    for (std::size_t k = 0; k < count; ++k) {
        const bool is_masked = array == "masked_scores" && q.is_allowed[k] == 0;
        answer_.value[k] = shown->value[k];
        if (is_masked) answer_.value[k] = no_score;
        if (with_errors_ && !is_masked)
            answer_.error[k] = shown->overflows[k] != 0 ? std::numeric_limits<double>::infinity()
                                                        : shown->error(k);
    }
}

void State::fill_weight(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    const bool is_final = array == "attention_weights";
    if (is_final && plan_.shown.averages(array)) return fill_averaged(array, batch, head, row);
    if (array == "mask" || array == "dropout_mask") {
        const QueryRow& q = scored(batch, head, row);
        start(plan_.kv_len);
        for (std::size_t k = 0; k < plan_.kv_len; ++k) {
            const double kept = c_.drops ? kept_of(q, k) : 1;
            const double factor = c_.drops && c_.rescales_dropout ? problem_.kept_weight : 1;
            const double x = array == "mask" ? static_cast<double>(q.is_allowed[k])
                             : kept == 0     ? 0
                                             : factor;
            answer_.value[k] = x;
            if (with_errors_) answer_.error[k] = 2 * model_.of_operand(x);
        }
        return;
    }
    if (array == "masked_weights") {
        QueryRow q = scored(batch, head, row);
        q.weight.assign(plan_.kv_len, 0);
        q.weight_error.assign(with_errors_ ? plan_.kv_len : 0, 0);
        softmax_of_keys(q, nullptr, true);
        mask_weights(q, false);
        start(plan_.kv_len);
        answer_.value = q.weight;
        answer_.error = q.weight_error;
        return;
    }
    const QueryRow& q = weighed(batch, head, row);
    const std::size_t count = q.weight.size();
    const auto stored_weight_error = [&](double error, std::size_t k) {
        if (!is_final) return error;
        error = dropped(q, k, error);
        return c_.drops
                   ? model_.stored(answer_.value[k], error + 2 * model_.unit() * answer_.value[k])
                   : error;
    };
    start(count);
    for (std::size_t k = 0; k < count; ++k) {
        answer_.value[k] = is_final ? dropped(q, k, q.weight[k]) : q.weight[k];
        if (!with_errors_) continue;
        answer_.error[k] = stored_weight_error(q.weight_error[k], k);
        if (!q.weight_below.empty())
            answer_.below.push_back(stored_weight_error(q.weight_below[k], k));
    }
}

/// The mean over the chosen heads.
void State::fill_averaged(ArrayId, std::size_t batch, std::size_t, std::size_t row) {
    std::vector<std::size_t> heads = plan_.shown.heads;
    if (heads.empty())
        for (std::size_t h = 0; h < plan_.heads; ++h) heads.push_back(h);
    start(plan_.kv_len);
    for (const std::size_t head : heads) {
        const QueryRow& q = weighed(batch, head, row);
        for (std::size_t k = 0; k < plan_.kv_len; ++k) {
            const double w = dropped(q, k, q.weight[k]);
            answer_.value[k] += w;
            if (with_errors_)
                answer_.error[k] += dropped(q, k, q.either_error(k)) + 2 * model_.rounding(w);
        }
    }
    const double count = static_cast<double>(heads.size());
    for (double& x : answer_.value) x /= count;
    for (std::size_t k = 0; k < answer_.error.size(); ++k)
        answer_.error[k] = answer_.error[k] / count + (model_.gamma(heads.size()) + model_.unit()) *
                                                          std::abs(answer_.value[k]);
}

void State::fill_statistic(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    const QueryRow& q = weighed(batch, head, row);
    start(1);
    double& value = answer_.value[0];
    double error = 0;
    const std::size_t count = q.weight.size();
    if (array == "logsumexp") {
        value = q.logsumexp;
        error = q.logsumexp_error;
    } else if (array == "max_score") {
        const std::vector<std::size_t> keys = ranked_keys(q, 1);
        value = no_score;
        if (!keys.empty()) value = q.scores.value[keys[0]];
        for (const std::size_t k : keys)
            if (with_errors_ && may_swap(q, k, keys[0])) error = std::max(error, score_error(q, k));
    } else if (array == "argmax_key") {
        const std::vector<std::size_t> keys = ranked_keys(q, 1);
        value = keys.empty() ? -1 : static_cast<double>(keys[0]);
        for (const std::size_t k : keys)
            if (with_errors_ && may_swap(q, k, keys[0]))
                error = std::max(error, distance_of(k, keys[0]));
    } else {
        const double position =
            static_cast<double>(plan_.first_query + q.row) +
            static_cast<double>(c_.band.offset[c_.band.offset.size() == 1 ? 0 : q.batch]);
        const bool is_entropy = array == "entropy";
        const auto amount = [&](std::size_t k) {
            return is_entropy ? -std::log(q.weight[k])
                              : std::abs(static_cast<double>(k) - position);
        };
        for (std::size_t k = 0; k < count; ++k)
            if (q.weight[k] != 0) value += q.weight[k] * amount(k);
        if (with_errors_) {
            double sizes = 0, largest_score = 0;
            bool has_key = false;
            for (std::size_t k = 0; k < count; ++k) {
                const double w = q.weight[k], of_weight = q.either_error(k);
                if (w != 0) {
                    has_key = true;
                    const double x = amount(k);
                    sizes += w * std::abs(x);
                    // The entropy's derivative by a weight is that of w ln w.
                    error += of_weight * (x + (is_entropy ? 1 : 0));
                    largest_score = std::max(largest_score, std::abs(q.scores.value[k]));
                } else if (of_weight != 0) {
                    error += of_weight *
                             (is_entropy ? 1 - std::log(std::min(of_weight, 1.0)) : amount(k));
                }
            }
            // Programs have ln w as the difference of a score and the logsumexp.
            if (is_entropy && has_key) sizes += 4 * (largest_score + std::abs(q.logsumexp));
            error += model_.gamma(count + 4) * sizes;
        }
    }
    if (with_errors_)
        answer_.error[0] = array == "argmax_key" ? error : model_.stored(value, error);
}

void State::fill_top(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    const QueryRow& q = weighed(batch, head, row);
    const bool lists_keys = array == "top_keys";
    const std::vector<std::size_t> keys = ranked_keys(q, plan_.top);
    start(plan_.top);
    for (std::size_t i = 0; i < plan_.top; ++i) {
        if (i >= keys.size()) {
            answer_.value[i] = lists_keys ? -1 : 0;
            continue;
        }
        answer_.value[i] = lists_keys ? static_cast<double>(keys[i]) : q.weight[keys[i]];
        if (!with_errors_) continue;
        double& error = answer_.error[i];
        for (const std::size_t k : keys)
            if (may_swap(q, k, keys[i]))
                error = std::max(error, lists_keys ? distance_of(k, keys[i]) : q.either_error(k));
    }
}

/// The sum or the largest of the weights of each key, over the queries that are computed.
void State::fill_by_key(ArrayId array, std::size_t batch, std::size_t head, std::size_t) {
    const bool adds = array == "key_mass";
    start(plan_.kv_len);
    for (std::size_t row = 0; row < plan_.rows; ++row) {
        const QueryRow& q = weighed(batch, head, row);
        for (std::size_t k = 0; k < plan_.kv_len; ++k) {
            double& value = answer_.value[k];
            value = adds ? value + q.weight[k]
                         : (q.weight[k] > value || std::isnan(q.weight[k]) ? q.weight[k] : value);
            if (!with_errors_) continue;
            double& error = answer_.error[k];
            error = adds ? error + q.either_error(k) : std::max(error, q.either_error(k));
        }
    }
    for (std::size_t k = 0; k < answer_.error.size(); ++k)
        if (adds)
            answer_.error[k] = model_.stored(
                answer_.value[k], answer_.error[k] + model_.gamma(plan_.rows) * answer_.value[k]);
}

}  // namespace attn::check_detail
