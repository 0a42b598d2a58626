// Gradients of a query's own arrays: weights, scores, the query.
#include "core/check/gradients.hpp"

#include "core/expression/derivative.hpp"

namespace attn {

/// Whether gradients are judged under these conventions.
bool Candidate::has_gradients(ArrayId array) const {
    const Conventions& asked = problem_.asked;
    const auto is_usual = [](const auto& tensors) {
        return tensors == ProjectionConvention().used;
    };
    const bool reads_mask = array == "grad_mask" && (c_.mask_transposed || c_.mask_tiled);
    return c_.axis == SoftmaxAxis::keys && c_.blocking != Blocking::after && !c_.weights &&
           !c_.sink_from_max && !reads_mask && c_.output == OutputConvention() &&
           c_.split == HeadSplit::columns && c_.merged != HeadSplit::reshaped &&
           c_.transposed == PerTensor<bool>{} && is_usual(c_.used) && is_usual(c_.projected_from) &&
           is_usual(c_.projected_by) && c_.state == asked.state &&
           projects_out() == problem_.projection[index_of(Tensor::out)].has_value();
}

Lanes Candidate::lanes_of(const RowsView& rows, const double* twice_variance) const {
    Lanes made(rows.rows, rows.columns, with_errors_);
    std::copy_n(rows.value, made.value.size(), made.value.data());
    for (std::size_t i = 0; i < made.squares.size(); ++i) {
        made.squares[i] = square(rows.error[i]);
        if (twice_variance != nullptr) made.variance[i] = twice_variance[i] / 2;
    }
    return made;
}

const Lanes& Candidate::joined_lanes(Tensor slot, std::size_t batch, std::size_t kv_head) {
    const bool is_key = slot == Tensor::key;
    const std::size_t index = batch * plan_.kv_heads + kv_head;
    return sums(is_key ? Sums::key_lanes : Sums::value_lanes, index, [&] {
        const RowsView rows = joined(slot, batch, kv_head);
        const bool has_noise = with_errors_ && model_.is_coarse();
        if (is_key)
            return SumsOfArrays{
                lanes_of(rows, has_noise ? key_variance(batch, kv_head)->value.data() : nullptr)};
        SumsOfArrays made{lanes_of(rows, nullptr)};
        for (std::size_t i = 0; has_noise && i < made[0].variance.size(); ++i)
            if (problem_.projection[index_of(slot)])
                made[0].variance[i] = square_of_half(type_, rows.value[i]) / 2;
        return made;
    })[0];
}

Lanes Candidate::query_lanes(const RowIndex& at) {
    std::vector<double> variance;
    if (with_errors_ && model_.is_coarse()) variance = query_variance(at);
    return lanes_of(query_of(at), variance.empty() ? nullptr : variance.data());
}

/// The candidate whose weights a backward pass has that leaves something out; else this one.
Candidate& Candidate::recomputed() {
    const Forgotten what = c_.backward.forgets;
    if (what == Forgotten::nothing) return *this;
    if (!recomputed_) {
        Conventions c = c_;
        c.backward = {};
        if (what == Forgotten::sink) {
            c.sink.clear();
            c.softmax_plus = 0;
        } else {
            c.band.causal = false;
        }
        if (what == Forgotten::masks) {
            c.band.left = c.band.right = -1;
            c.rule = nullptr;
            c.mask_mod = false;
            c.kv_lengths.clear();
            for (MaskConvention& mask : c.masks) mask.use = MaskUse::ignored;
        }
        recomputed_ = std::make_unique<Candidate>(shared_, std::move(c), with_errors_);
    }
    return *recomputed_;
}

Candidate::BackwardRow& Candidate::backward_row(const RowIndex& at) {
    backward_.resize(plan_.heads);
    std::shared_ptr<BackwardRow>& kept = backward_[at.head];
    if (!kept) kept = std::make_shared<BackwardRow>();
    BackwardRow& b = *kept;
    if (std::exchange(b.is_made, true) && b.at == at) return b;
    b.at = at;
    const Lanes& outputs = output_gradients(at.batch);  // first: it may compute other rows
    const BackwardConvention& how = c_.backward;
    const QueryRow& own = answered(at);
    const QueryRow& q = &recomputed() == this ? own : recomputed().answered(at);
    const Lanes& values = joined_lanes(Tensor::value, at.batch, kv_head_of(at.head, Tensor::value));
    const std::size_t count = values.rows, output = at.head * plan_.rows + at.row;
    const bool has_noise = with_errors_ && model_.is_coarse();
    std::vector<double> variance(count, 0);
    if (has_noise) variance = recomputed().weight_variance(q, NoiseDetail::steps);
    const double regrown = how.keeps_sum ? std::exp(q.logsumexp.value - own.logsumexp.value) : 1;
    const auto weight_of = [&](const Numbers& weights, std::size_t k) {
        const double w = weights.value[k] * regrown,
                     bound = with_errors_ ? weights.bound(k) * regrown : 0;
        const double likely = variance[k] < HUGE_VAL ? variance[k] / 2 : square(bound);
        return Lane{w, square(bound), has_noise ? likely : 0};
    };
    const Numbers& softmax = c_.prob_mod ? q.softmax : q.weight;
    Numbers slopes = softmax;
    if (c_.prob_mod) apply_formula(derivative(plan_.config.prob_mod), q, slopes);

    for (std::vector<Lane>* const x : {&b.by_weight, &b.before, &b.by_softmax, &b.weight})
        x->assign(count, {});
    std::vector<Lane> p(count);
    Lane& term = b.term = {};
    const auto term_weight = [&](std::size_t k) {
        const Numbers& weights = how.keeps_sum ? own.weight : softmax;
        return how.row_term == RowTerm::none      ? 0
               : how.row_term == RowTerm::dropped ? dropped(q, k, q.weight.value[k])
                                                  : weights.value[k];
    };
    for (std::size_t k = 0; k < count; ++k) {
        if (q.is_allowed[k] == 0 && softmax.value[k] == 0) continue;
        p[k] = weight_of(softmax, k);
        const double kept_part = kept_of(q, k), factor = dropped(q, k, 1);
        b.weight[k] = weight_of(q.weight, k).times(how.drops_values ? factor : c_.weight_factor);
        if (has_noise && c_.drops) b.weight[k] = lane_model_.stored(b.weight[k]);
        b.by_weight[k] = lane_model_.inner(outputs, output, values, k);
        double back = factor;
        if (c_.drops && !how.drops) back = c_.weight_factor;
        if (c_.drops && how.drops && c_.rescales_dropout && kept_part != 0)
            back *= std::pow(problem_.kept_weight, how.dropout_factors - 1);
        b.before[k] = b.by_weight[k].times(back);
        if (with_errors_ && c_.drops) b.before[k] = lane_model_.stored(b.before[k]);
        b.by_softmax[k] = b.before[k];
        if (c_.prob_mod) {
            const Lane slope{slopes.value[k], with_errors_ ? square(slopes.bound(k)) : 0,
                             square(model_.unit() * slopes.value[k])};
            b.by_softmax[k] = lane_model_.stored(b.before[k] * slope);
        }
        term.value += term_weight(k) * b.by_softmax[k].value;
    }
    const double relative = lane_model_.of_products(count), unit = square(model_.unit());
    for (std::size_t k = 0; k < count && with_errors_; ++k) {
        const Lane& x = b.by_softmax[k];
        const double pp = square(p[k].value), apart = square(x.value - term.value),
                     product = pp * square(x.value);
        term.squares +=
            pp * x.squares + p[k].squares * (apart + x.squares) + (relative + unit) * product;
        term.variance += pp * x.variance + p[k].variance * apart + (relative + unit / 2) * product;
    }
    // Others take it from the outputs, which are rounded.
    for (std::size_t i = 0; i < outputs.columns && with_errors_; ++i) {
        const double rounded = square(outputs.at(output, i).value * own.output.value[i]) * unit;
        term.squares += rounded;
        term.variance += rounded / 2;
    }
    term = lane_model_.finished(term, count);
    Candidate& of_sink = how.keeps_sum ? *this : recomputed();
    const double sink =
        std::exp(of_sink.sink_of_head(at.head) - (how.keeps_sum ? own : q).logsumexp.value);
    b.sink = Lane{-sink, square(q.sink_error + model_.unit() * sink), unit * square(sink)} * term;
    // Weights that are renormalised add up to 1 without the sink and masked keys, whose gradients
    // are 0, but for the rounding of the sum.
    const bool renormalizes = c_.blocking == Blocking::renormalize;
    double residue = 0;
    for (std::size_t k = 0; k < count && renormalizes && with_errors_; ++k)
        residue += std::abs(p[k].value * b.by_softmax[k].value);
    residue *= 2 * (model_.gamma_of_products(count) + model_.unit());
    if (renormalizes) b.sink = {0, square(sink * residue), square(sink * residue)};

    b.raw.assign(count, {});
    b.slope.assign(count, 0);
    for (std::size_t k = 0; k < count; ++k) {
        const Lane& x = b.by_softmax[k];
        b.raw[k] = lane_model_.stored(p[k] * Lane{x.value - term.value, x.squares, x.variance});
        if (p[k].value == 0 && p[k].squares == 0) b.raw[k] = {};
        if (const double score = q.scores.value[k];
            residue != 0 && q.is_allowed[k] == 0 && std::isfinite(score)) {
            const double error = std::exp(score - q.logsumexp.value) * residue;
            b.raw[k] = {0, square(error), square(error)};
        }
        b.slope[k] = -p[k].value;
    }
    scores_back(q, b);
    return b;
}

/// From the gradient of the scores that enter the softmax to that of the products.
void Candidate::scores_back(const QueryRow& q, BackwardRow& b) {
    const std::size_t count = b.raw.size();
    const Candidate& forward = recomputed();
    const auto multiply = [&](std::size_t k, const Lane& by, bool stores = true) {
        b.raw[k] = b.raw[k] * by;
        if (stores && with_errors_) b.raw[k] = lane_model_.stored(b.raw[k]);
        b.slope[k] *= by.value;
    };
    KeyNumbers x;
    for (std::size_t i = c_.order.size(); i-- > 0;) {
        const ScoreStage stage = c_.order[i];
        if (i == 0)
            x = q.raw;
        else if (stage == ScoreStage::softcap || stage == ScoreStage::alibi)
            take_stages(q, x, c_.order[i - 1]);
        switch (stage) {
            case ScoreStage::block:
                for (std::size_t k = 0; k < count; ++k)
                    if (q.is_unblocked[k] == 0 && c_.blocking != Blocking::renormalize &&
                        !(c_.masked_value_is_added && std::isfinite(c_.masked_value)))
                        multiply(k, {}, false);
                break;
            case ScoreStage::bias:
                for (std::size_t mask = 0; mask < c_.masks.size(); ++mask) {
                    b.by_mask[mask].clear();
                    for (std::size_t k = 0; k < count && problem_.mask(mask); ++k) {
                        b.by_mask[mask].push_back(b.with_term(k).times(c_.masks[mask].factor));
                        if (forward.added_by_mask(q, mask, k) == no_score ||
                            forward.is_zeroed(q, mask, k))
                            multiply(k, {}, false);
                    }
                }
                break;
            case ScoreStage::alibi:
                if (c_.modifies_scores()) formulas_back(q, x, b);
                break;
            case ScoreStage::softcap:
                b.capped = b.all_with_term();
                for (std::size_t k = 0; k < count && c_.softcap != 0; ++k)
                    if (b.raw[k].value != 0 || b.raw[k].squares != 0) multiply(k, cap_slope(x, k));
                break;
            case ScoreStage::scale:
                b.scaled = b.all_with_term();
                for (std::size_t k = 0; k < count; ++k) {
                    const double scale = scale_of(q.at.head),
                                 error = model_.of_scale(std::abs(scale)) * std::abs(scale);
                    multiply(k, {scale, square(error), 0});
                }
        }
    }
    round_lanes(Rounded::score_factors, b.raw);
}

Lane Candidate::cap_slope(const KeyNumbers& x, std::size_t k) const {
    const double cap = c_.softcap, factor = c_.softcap_multiplies ? 1 : 1 / cap;
    double before = x.value[k] / cap;
    const double bent = std::tanh(before), error = with_errors_ ? x.error(k) / cap : 0;
    if (c_.backward.cap == CapSlope::none) return {1};
    if (c_.backward.cap == CapSlope::of_capped) before = bent;
    double slope = factor / square(std::cosh(std::min(std::abs(before), 300.0)));
    if (c_.backward.cap == CapSlope::unscaled) slope = 1 - square(cap * bent);
    const double changed =
        std::min(1.0, (2 * std::abs(bent) * slope + error) * error + 4 * model_.unit());
    return {slope, square(changed), (square(2 * bent) + square(slope)) * square(model_.unit()) / 2};
}

void Candidate::formulas_back(const QueryRow& q, KeyNumbers& x, BackwardRow& b) const {
    add_alibi(q, x);
    const std::vector<NamedFormula>& all = plan_.config.score_formulas;
    std::vector<Numbers> slopes;
    for (const auto& [key, formula] : all) {
        if (!(key == "score_mod" ? c_.score_mod : c_.relative_bias)) continue;
        Numbers scores{1, x.value.size(), x.value, {}};
        for (std::size_t k = 0; k < scores.columns && with_errors_; ++k)
            scores.error.push_back(x.error(k));
        slopes.push_back(scores);
        apply_formula(derivative(formula), q, slopes.back());
        apply_formula(formula, q, scores);
        for (std::size_t k = 0; k < scores.columns; ++k) {
            x.value[k] = scores.value[k];
            if (with_errors_) x.replace(k, scores.bound(k));
        }
        x.scaled.clear();
    }
    for (auto at = slopes.rbegin(); at != slopes.rend(); ++at)
        for (std::size_t k = 0; k < x.value.size(); ++k) {
            if (b.raw[k].value == 0 && b.raw[k].squares == 0) continue;
            b.raw[k] = lane_model_.stored(
                b.raw[k] * Lane{at->value[k], with_errors_ ? square(at->bound(k)) : 0, 0});
            b.slope[k] *= at->value[k];
        }
}

Lanes Candidate::query_gradient(const RowIndex& at) {
    const BackwardRow& b = backward_row(at);
    const Lanes& keys = joined_lanes(Tensor::key, at.batch, kv_head_of(at.head));
    const double relative = lane_model_.of_products(keys.rows);
    Lanes sum(1, keys.columns, with_errors_), common(1, keys.columns, false);
    for (std::size_t k = 0; k < keys.rows; ++k) {
        if (b.raw[k].value == 0 && b.raw[k].squares == 0) continue;
        LaneModel::add(b.raw[k], keys, k, relative, sum, 0);
        if (with_errors_) LaneModel::add({b.slope[k]}, keys, k, 0, common, 0);
    }
    for (std::size_t i = 0; i < sum.squares.size(); ++i) {
        sum.squares[i] += b.term.squares * square(common.value[i]);
        sum.variance[i] += b.term.variance * square(common.value[i]);
    }
    lane_model_.finish(sum, keys.rows);
    scale_lanes(sum, std::pow(scale_of(at.head), c_.backward.query_scale - 1));
    return sum;
}

/// Of all queries of a head: by queries, keys, values, the sink and masks.
Candidate::SumsOfArrays Candidate::softmax_pass(std::size_t batch, std::size_t head) {
    SumsOfArrays all;
    const Lanes& outputs = output_gradients(batch);
    Lanes query(plan_.rows, plan_.d_k, with_errors_), key(plan_.kv_len, plan_.d_k, with_errors_),
        value(plan_.kv_len, plan_.d_v, with_errors_), sink(1, 2, with_errors_);
    for (std::size_t mask = 0; mask < c_.masks.size(); ++mask) {
        const auto& given = problem_.mask(mask);
        all.emplace_back(given ? given->shape[2] : 0, given ? given->shape[3] : 0, with_errors_);
    }
    const double relative = lane_model_.of_products(plan_.rows);
    for (std::size_t row = 0; row < plan_.rows; ++row) {
        const RowIndex at{batch, head, row};
        const Lanes of_query = query_gradient(at), factor = query_lanes(at);
        BackwardRow& b = backward_row(at);
        for (std::size_t i = 0; i < plan_.d_k; ++i) query.set(row, i, of_query.at(0, i));
        round_lanes(Rounded::output_factors, b.weight);
        for (std::size_t k = 0; k < plan_.kv_len; ++k) {
            if (b.weight[k].value != 0 || b.weight[k].squares != 0)
                LaneModel::add(b.weight[k], outputs, head * plan_.rows + row, relative, value, k);
            if (b.raw[k].value != 0 || b.raw[k].squares != 0)
                LaneModel::add(b.with_term(k), factor, 0, relative, key, k);
        }
        sink.set(0, 0, sink.at(0, 0) + b.sink);
        sink.value[1] += std::abs(b.sink.value);
        for (std::size_t mask = 0; mask < c_.masks.size(); ++mask) {
            Lanes& to = all[mask];
            const std::size_t query_at = to.rows == 1 ? 0 : plan_.first_query + row;
            for (std::size_t k = 0; k < b.by_mask[mask].size(); ++k) {
                const std::size_t column = to.columns == 1 ? 0 : k;
                if (column < to.columns)
                    to.set(query_at, column, to.at(query_at, column) + b.by_mask[mask][k]);
            }
        }
    }
    lane_model_.finish(key, plan_.rows);
    lane_model_.finish(value, plan_.rows);
    scale_lanes(key, std::pow(scale_of(head), c_.backward.key_scale - 1));
    for (Lanes* one : {&sink, &value, &key, &query}) all.insert(all.begin(), std::move(*one));
    return all;
}

}  // namespace attn
