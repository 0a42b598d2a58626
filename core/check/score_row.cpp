// The scores of one query, in the order of a candidate's stages.
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/check/evaluate.hpp"
#include "core/operator/top_k.hpp"

namespace attn {

void exclude_keys(const Expression& mask, const ExpressionSizes& sizes, const ExpressionRow& row,
                  std::vector<char>& allowed) {
    std::array<bool, 512> attends{};
    for (std::size_t first = 0; first < allowed.size(); first += attends.size()) {
        const std::size_t count = std::min(attends.size(), allowed.size() - first);
        compute_row(mask, sizes, row, first, std::span(attends.data(), count));
        for (std::size_t k = 0; k < count; ++k)
            if (!attends[k]) allowed[first + k] = 0;
    }
}

struct Candidate::MaskRow {
    const double* values;
    std::size_t step, end;  ///< keys from `end` on are beyond its columns

    double at(std::size_t key) const { return values[key * step]; }
};

Candidate::MaskRow Candidate::mask_row(const QueryRow& q, std::size_t which) const {
    const OperandNumbers& mask = *problem_.mask(which);
    const bool is_transposed = c_.mask_transposed && which == 0;
    const std::size_t query = plan_.first_query + q.at.row;
    const std::size_t batch =
        c_.mask_tiled ? (q.at.batch * plan_.heads + q.at.head) % plan_.batch : q.at.batch;
    const std::size_t index[3] = {batch, q.at.head, is_transposed ? 0 : query};
    std::size_t at = 0;
    for (std::size_t i = 0; i < 3; ++i)
        at = at * mask.shape[i] + (mask.shape[i] == 1 ? 0 : index[i]);
    const double* const values = mask.values.data() + at * mask.shape[3];
    if (is_transposed) return {values + query, mask.shape[3], mask.shape[2]};
    if (mask.shape[3] == 1) return {values, 0, std::numeric_limits<std::size_t>::max()};
    return {values, 1, mask.shape[3]};
}

std::int64_t Candidate::position_of(const QueryRow& q,
                                    const std::vector<std::int64_t>& offset) const {
    return as_signed(plan_.first_query + q.at.row) + offset[offset.size() == 1 ? 0 : q.at.batch];
}

void Candidate::find_allowed(QueryRow& q) {
    const std::size_t keys = plan_.kv_len, query = plan_.first_query + q.at.row;
    q.is_allowed.assign(keys, 1);
    const auto block_unless = [&](std::int64_t first, std::int64_t end) {
        for (std::size_t k = 0; k < keys; ++k)
            if (as_signed(k) < first || as_signed(k) >= end) q.is_allowed[k] = 0;
    };
    const BandConvention& band = c_.band;
    const std::int64_t position = position_of(q, band.offset), all = as_signed(keys);
    const auto apply = [&](const Expression& formula) {
        exclude_keys(formula, plan_.expression_sizes(), {q.at.batch, q.at.head, query},
                     q.is_allowed);
    };
    if (c_.rule)
        apply(c_.rule->formula);
    else if (band.causal && band.causal_reversed)
        block_unless(position + band.causal_shift, all);
    else if (band.causal)
        block_unless(0, position + band.causal_shift + 1);
    const std::int64_t at =
        band.window_offset.empty() ? position : position_of(q, band.window_offset);
    if (!c_.rule && band.left >= 0) block_unless(at - band.left, all);
    if (!c_.rule && band.right >= 0) block_unless(0, at + band.right + 1);
    block_unless(as_signed(c_.first_key), all);
    if (!c_.rule && c_.mask_mod)
        for (const NamedFormula& mask : plan_.mask_formulas) apply(mask.formula);
    const bool pads_keys = c_.padding != PaddingAxis::queries,
               pads_queries = c_.padding != PaddingAxis::keys;
    if (!c_.kv_lengths.empty()) {
        const std::size_t length = std::min<std::uint64_t>(
            c_.kv_lengths[c_.kv_lengths.size() == 1 ? 0 : q.at.batch], keys);
        const std::size_t first = c_.lengths_from_end ? keys - length : 0;
        if (pads_keys) block_unless(as_signed(first), as_signed(first + length));
        if (pads_queries && (query < first || query >= first + length)) block_unless(0, 0);
    }
    std::vector<char> by_added;  // empty: all
    for (std::size_t i = 0; i < c_.masks.size(); ++i) {
        const MaskConvention& mask = c_.masks[i];
        const bool is_added = mask.use == MaskUse::added;
        if (!problem_.mask(i) || (!is_added && mask.use != MaskUse::blocks)) continue;
        if (is_added && by_added.empty()) by_added.assign(keys, 1);
        const MaskRow row = mask_row(q, i);
        const auto allows = [&](std::size_t k) {
            if (k >= row.end) return is_added;
            return is_added ? mask.factor * row.at(k) != no_score
                            : (row.at(k) != 0) == mask.nonzero_keeps;
        };
        const bool of_padding = i == 1;
        for (std::size_t k = 0; k < keys && (pads_keys || !of_padding); ++k)
            if (!allows(k)) (is_added ? by_added : q.is_allowed)[k] = 0;
        if (of_padding && pads_queries && !allows(query)) block_unless(0, 0);
    }
    q.is_unblocked = q.is_allowed;
    for (std::size_t k = 0; k < by_added.size(); ++k)
        if (by_added[k] == 0) q.is_allowed[k] = 0;
}

void Candidate::score(QueryRow& q) {
    const RowsView query = query_of(q.at),
                   keys = joined(Tensor::key, q.at.batch, kv_head_of(q.at.head));
    const std::size_t count = keys.rows;
    q.raw.value.resize(count);
    for (std::size_t k = 0; k < count; ++k)
        q.raw.value[k] = inner_product(query.value, keys.at(k), keys.columns);
    if (with_errors_) {
        q.raw.independent.resize(count);
        q.raw.common.resize(count);
        q.raw.overflows.assign(count, 0);
        for (std::size_t k = 0; k < count; ++k) {
            const ProductError error =
                product_error(model_, q.raw.value[k], query, keys.part(k), 2);
            q.raw.store(k, error.independent, model_);
            q.raw.common[k] = error.common;
        }
    }
    round_numbers(Rounded::products, q.raw);
    find_allowed(q);
    take_stages(q, q.scores, std::nullopt);
    if (plan_.config.top_k) keep_top(q);
    round_numbers(Rounded::scores, q.scores);
}

/// Where a key of neither side is certain, what may be among the highest is kept, and nothing is
/// known of the weights.
void Candidate::keep_top(QueryRow& q) {
    const KeyNumbers& x = q.scores;
    const std::size_t count = x.value.size();
    std::vector<char> kept = q.is_allowed;
    keep_highest(std::span(std::as_const(x.value)), std::span(kept),
                 static_cast<std::size_t>(*plan_.config.top_k));
    double least = HUGE_VAL;
    for (std::size_t k = 0; k < count && with_errors_; ++k)
        if (kept[k] != 0) least = std::min(least, x.value[k] - x.error(k));
    bool is_known = true;
    for (std::size_t k = 0; k < count; ++k) {
        if (kept[k] != 0 || q.is_allowed[k] == 0) continue;
        if (with_errors_ && x.value[k] + x.error(k) >= least)
            is_known = false;
        else
            q.is_unblocked[k] = q.is_allowed[k] = 0;
    }
    take_stages(q, q.scores, std::nullopt);
    for (std::size_t k = 0; k < count && !is_known; ++k)
        if (q.is_allowed[k] != 0) q.scores.replace(k, HUGE_VAL);
}

void Candidate::round_numbers(Rounded what, KeyNumbers& x) const {
    if (!rounds(c_, what)) return;
    std::vector<double> error(x.value.size());
    for (std::size_t k = 0; k < error.size() && with_errors_; ++k) error[k] = x.error(k);
    round_rows(c_, what, x.value.data(), error.data(), error.size());
    if (!with_errors_) return;
    x.common.assign(error.size(), 0);
    x.independent = std::move(error);
    x.scaled.clear();
}

void Candidate::take_stages(const QueryRow& q, KeyNumbers& x,
                            std::optional<ScoreStage> last) const {
    x = q.raw;
    for (const ScoreStage stage : c_.order) {
        switch (stage) {
            case ScoreStage::scale: scale_scores(scale_of(q.at.head), x); break;
            case ScoreStage::softcap: cap_scores(x); break;
            case ScoreStage::alibi:
                add_alibi(q, x);
                modify_scores(q, x);
                break;
            case ScoreStage::bias: add_masks(q, x); break;
            case ScoreStage::block: block_scores(q, x); break;
        }
        if (stage == last) return;
    }
}

double Candidate::scale_of(std::size_t head) const {
    return c_.head_scales.empty() ? c_.scale : c_.scale * c_.head_scales[head];
}

void Candidate::scale_scores(double scale, KeyNumbers& x) const {
    for (double& value : x.value) value *= scale;
    if (!with_errors_) return;
    const double factor = std::abs(scale);
    for (std::size_t k = 0; k < x.value.size(); ++k) {
        x.store(k, x.independent[k] * factor, model_);
        x.common[k] *= factor;
    }
    x.scaled = x.value;
    x.of_factor = model_.of_scale(factor);
}

void Candidate::cap_scores(KeyNumbers& x) const {
    if (c_.softcap == 0) return;
    for (std::size_t k = 0; k < x.value.size(); ++k) {
        const double before = x.value[k] / c_.softcap;
        const double factor = c_.softcap_multiplies ? c_.softcap : 1;
        const double bent = std::tanh(before), value = factor * bent;
        if (with_errors_ && std::isinf(before)) {
            x.replace(k, 8 * model_.unit() * std::abs(value));
        } else if (with_errors_) {
            const double cap = std::abs(factor), shrink = std::abs(factor / c_.softcap);
            const double error = x.error(k) / std::abs(c_.softcap);
            // tanh is flatter than at the end of the interval that is nearest to 0, and its results
            // stay between those of the ends.
            const double nearest = std::max(0.0, std::abs(before) - error);
            const double cosh = std::cosh(std::min(nearest, 300.0)), slope = 1 / (cosh * cosh);
            const double most = cap * (std::abs(bent) - std::tanh(std::abs(before) - error));
            const double of_query = std::min(x.common[k] * shrink * slope, most);
            const double others =
                std::min((x.error(k) - x.common[k]) * shrink * slope, most - of_query);
            const double own = (3 * model_.unit() + 5 * model_.fine_unit()) * std::abs(value) +
                               3 * model_.unit() * std::abs(before) * cap * slope +
                               cap * model_.least();  // where x / c underflows
            x.value[k] = value;
            x.overflows[k] = 0;
            x.store(k, others + own, model_);
            x.independent[k] = std::min(x.independent[k], 2 * cap);
            x.common[k] = of_query;
        }
        x.value[k] = value;
    }
    x.scaled.clear();
}

void Candidate::add_term(KeyNumbers& x, std::size_t key, double term, double term_error) const {
    x.value[key] += term;
    if (!with_errors_) return;
    if (x.value[key] == no_score)
        x.independent[key] = x.common[key] = 0;
    else
        x.store(key, x.independent[key] + term_error, model_);
}

double Candidate::slope_of(std::size_t head) const {
    const AlibiConvention& alibi = c_.alibi;
    const std::size_t count = plan_.heads;
    const auto slope_of_head = [&] {
        const auto index = static_cast<double>(head), heads = static_cast<double>(count);
        switch (alibi.slopes) {
            case AlibiSlopes::asked: return alibi_slope(plan_.config, count, head);
            case AlibiSlopes::from_one: return std::exp2(-8 * (index + 1) / heads);
            case AlibiSlopes::from_zero: return std::exp2(-8 * index / heads);
            case AlibiSlopes::published: return alibi_slope({}, count, head);
            case AlibiSlopes::reversed: return alibi_slope(plan_.config, count, count - 1 - head);
            case AlibiSlopes::slow: return std::exp2(-4 * (index + 1) / heads);
        }
        return 0.0;
    };
    return slope_of_head() * alibi.sign * (alibi.is_scaled ? scale_of(head) : 1);
}

double Candidate::alibi_distance(const QueryRow& q, std::size_t key) const {
    const std::int64_t position = position_of(q, c_.band.offset);
    std::int64_t distance = as_signed(key);
    if (c_.alibi.distance == AlibiDistance::from_query) distance -= position;
    if (c_.alibi.distance == AlibiDistance::absolute) distance = -std::abs(distance - position);
    return static_cast<double>(distance);
}

void Candidate::add_alibi(const QueryRow& q, KeyNumbers& x) const {
    if (!c_.alibi.is_on) return;
    const double slope = slope_of(q.at.head);
    for (std::size_t k = 0; k < x.value.size(); ++k) {
        const double term = slope * alibi_distance(q, k);
        add_term(x, k, term, 8 * model_.rounding(term));
    }
}

void Candidate::apply_formula(const Expression& formula, const QueryRow& q, Numbers& x) const {
    ExpressionSizes sizes = plan_.expression_sizes();
    sizes.in_float32 = false;
    const std::size_t query = plan_.first_query + q.at.row;
    const std::vector<double> before = x.value;
    compute_row(formula, sizes, {q.at.batch, q.at.head, query}, 0, std::span(x.value));
    if (!with_errors_) return;
    std::vector<double> below(before.size());
    for (std::size_t k = 0; k < before.size(); ++k) {
        const NumberRange range =
            ranges_of(formula, sizes, {q.at.batch, q.at.head, query, 1, k, 1},
                      {{before[k] - x.below_at(k), before[k] + x.error[k], std::isnan(before[k])},
                       model_.unit()})
                .back();
        const bool is_known = !range.nan && std::isfinite(x.value[k]);
        below[k] = is_known ? x.value[k] - range.low : range.nan ? HUGE_VAL : 0;
        x.error[k] = is_known ? range.high - x.value[k] : below[k];
    }
    x.below = std::move(below);
}

void Candidate::modify_scores(const QueryRow& q, KeyNumbers& x) const {
    for (const auto& [key, formula] : plan_.config.score_formulas) {
        if (!(key == "score_mod" ? c_.score_mod : c_.relative_bias)) continue;
        Numbers scores{1, x.value.size(), std::move(x.value), {}};
        for (std::size_t k = 0; k < scores.columns && with_errors_; ++k)
            scores.error.push_back(x.error(k));
        apply_formula(formula, q, scores);
        x.value = std::move(scores.value);
        for (std::size_t k = 0; k < scores.columns && with_errors_; ++k)
            x.replace(k, scores.bound(k) + model_.rounding(x.value[k]));
        x.scaled.clear();
    }
}

double Candidate::added_by_mask(const QueryRow& q, std::size_t which, std::size_t key) const {
    if (!problem_.mask(which) || c_.masks[which].use != MaskUse::added) return 0;
    const MaskRow row = mask_row(q, which);
    return key < row.end ? c_.masks[which].factor * row.at(key) : 0;
}

bool Candidate::is_zeroed(const QueryRow& q, std::size_t which, std::size_t key) const {
    if (!problem_.mask(which) || c_.masks[which].use != MaskUse::multiplied) return false;
    const MaskRow row = mask_row(q, which);
    return key < row.end && row.at(key) == 0;
}

void Candidate::add_masks(const QueryRow& q, KeyNumbers& x) const {
    for (std::size_t i = 0; i < c_.masks.size(); ++i) {
        const MaskConvention& mask = c_.masks[i];
        const bool is_added = mask.use == MaskUse::added;
        if (!problem_.mask(i) || (!is_added && mask.use != MaskUse::multiplied)) continue;
        const MaskRow row = mask_row(q, i);
        for (std::size_t k = 0; k < std::min(x.value.size(), row.end); ++k) {
            if (is_added) {
                const double term = mask.factor * row.at(k);
                if (term == no_score) x.value[k] = 0;  // which may be infinite or NaN
                add_term(x, k, term, model_.of_operand(term));
            } else if (row.at(k) == 0) {
                x.value[k] = 0;
                if (with_errors_) x.replace(k, 0);
            }
        }
    }
}

void Candidate::block_scores(const QueryRow& q, KeyNumbers& x) const {
    if (c_.blocking != Blocking::before && !std::isfinite(c_.masked_value)) return;
    for (std::size_t k = 0; k < x.value.size(); ++k) {
        if (q.is_unblocked[k] != 0 || x.value[k] == no_score) continue;
        double error = 0;
        if (c_.masked_value_is_added && std::isfinite(c_.masked_value)) {
            // A large number leaves only the leading digits of the score, or none.
            if (with_errors_) error = x.error(k);
            const auto sum = [&](double score) { return type_.round(score + c_.masked_value); };
            const double low = sum(x.value[k] - error), high = sum(x.value[k] + error);
            x.value[k] = sum(x.value[k]);
            error = std::isfinite(x.value[k]) ? std::max(x.value[k] - low, high - x.value[k]) : 0;
        } else {
            x.value[k] = type_.round(c_.masked_value);
        }
        if (with_errors_) x.replace(k, error);
    }
}

}  // namespace attn
