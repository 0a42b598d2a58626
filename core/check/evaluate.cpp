#include "core/check/evaluate.hpp"

namespace attn {

bool Evaluator::has(ArrayId array) {
    return Candidate::fill_of(array) != nullptr;
}

Candidate::Fill Candidate::fill_of(ArrayId array) {
    static constexpr std::pair<Fill, ArraySet> rows[] = {
        {&Candidate::fill_input, {"inputs", "normed_inputs"}},
        {&Candidate::fill_parameter,
         {"W_query", "b_query", "W_key", "b_key", "W_value", "b_value", "W_out", "b_out"}},
        {&Candidate::fill_unrotated, {"unrotated_queries", "unrotated_keys"}},
        {&Candidate::fill_head, {"queries", "keys", "values", "present_key", "present_value"}},
        {&Candidate::fill_score,
         {"scores", "scaled_scores", "capped_scores", "biased_scores", "masked_scores"}},
        {&Candidate::fill_mask, {"mask", "dropout_mask"}},
        {&Candidate::fill_masked_weight, {"masked_weights"}},
        {&Candidate::fill_weight, {"weights_before_dropout", "attention_weights"}},
        {&Candidate::fill_statistic, {"logsumexp", "entropy", "mean_distance"}},
        {&Candidate::fill_top, {"max_score", "argmax_key", "top_keys", "top_weights"}},
        {&Candidate::fill_by_key, {"key_mass", "key_max"}},
        {&Candidate::fill_state, {"states", "present_state"}},
        {&Candidate::fill_output, {"head_outputs"}},
        {&Candidate::fill_context, {"context_vectors"}},
    };
    for (const auto& [fill, arrays] : rows)
        if (arrays.has(array)) return fill;
    if (array == "loss" || array.row().is_gradient()) return &Candidate::fill_gradient;
    return nullptr;
}

Candidate::Candidate(const Evaluator& evaluator, Conventions conventions, bool with_errors)
    : shared_(evaluator), problem_(shared_.problem()), plan_(problem_.plan),
      model_(shared_.model()), type_(row_of(shared_.arithmetic())), c_(std::move(conventions)),
      with_errors_(with_errors), is_linear_(plan_.config.rule.has_value()),
      rounds_projected_(rounds(c_, Rounded::projected) || rounds(c_, Rounded::unrotated) ||
                        rounds(c_, Rounded::score_factors) || rounds(c_, Rounded::output_factors)),
      heads_(3), keys_(plan_.batch * plan_.kv_heads), values_(plan_.batch * plan_.kv_heads),
      rows_(plan_.heads), largest_value_(plan_.batch * plan_.kv_heads),
      same_value_(largest_value_.size()) {}

const Numbers& Candidate::row(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    (this->*fill_of(array))(array, {batch, head, row});
    return answer_;
}

void Candidate::answer_row(const RowsView& row) {
    reset(answer_, row.columns);
    std::copy_n(row.value, row.columns, answer_.value.data());
    std::copy_n(row.error, row.columns, answer_.error.data());
}

void Candidate::answer_operands(const double* values, std::size_t count, std::size_t step) {
    reset(answer_, count);
    for (std::size_t i = 0; i < count; ++i) {
        answer_.value[i] = values[i * step];
        answer_.error[i] = model_.of_operand(answer_.value[i]);
    }
}

/// Inputs, or normed inputs; the tokens are not the computed ones alone.
void Candidate::fill_input(ArrayId array, const RowIndex& at) {
    const std::size_t row = at.batch * plan_.q_len + at.row, columns = problem_.inputs.columns;
    if (array == "normed_inputs")
        answer_row(shared_.normed_inputs()->view().part(row));
    else
        answer_operands(problem_.inputs.value.data() + row * columns, columns);
}

void Candidate::fill_parameter(ArrayId array, const RowIndex& at) {
    constexpr ArrayId weights[] = {"W_query", "W_key", "W_value", "W_out"},
                      biases[] = {"b_query", "b_key", "b_value", "b_out"};
    for (std::size_t i = 0; i < 4; ++i) {
        if (array != weights[i] && array != biases[i]) continue;
        const ProjectionNumbers& p = *problem_.projection[i];
        const std::size_t d_out = p.d_out / p.groups, first = at.head * d_out;
        if (array == biases[i])
            answer_operands(p.bias.data() + first, d_out);
        else if (plan_.is_transposed(array))
            answer_operands(p.weight.data() + first * p.d_in + at.row, d_out, p.d_in);
        else
            answer_operands(p.weight.data() + (first + at.row) * p.d_in, p.d_in);
    }
}

void Candidate::fill_unrotated(ArrayId array, const RowIndex& at) {
    answer_row(array == "unrotated_queries"
                   ? unrotated(Tensor::query, at.batch, at.head).part(plan_.first_query + at.row)
                   : unrotated(Tensor::key, at.batch, at.head).part(at.row));
}

/// Queries; keys and values, new ones or with those of the cache.
void Candidate::fill_head(ArrayId array, const RowIndex& at) {
    if (array == "queries") return answer_row(as_stored().query_of(at));
    const Tensor slot = array == "keys" || array == "present_key" ? Tensor::key : Tensor::value;
    const bool has_cached = array == "present_key" || array == "present_value";
    const std::size_t cached =
        problem_.numbers("past_key").empty() || has_cached ? 0 : plan_.past_len;
    answer_row(as_stored().joined(slot, at.batch, at.head).part(cached + at.row));
}

/// The same without roundings of factors.
Candidate& Candidate::as_stored() {
    if (!rounds(c_, Rounded::score_factors) && !rounds(c_, Rounded::output_factors)) return *this;
    if (!stored_) {
        Conventions stored = c_;
        std::erase_if(stored.roundings, [](const Conventions::Rounding& one) {
            return one.what == Rounded::score_factors || one.what == Rounded::output_factors;
        });
        stored_ = std::make_unique<Candidate>(shared_, std::move(stored), with_errors_);
    }
    return *stored_;
}

RowsView Candidate::unrotated(Tensor slot, std::size_t batch, std::size_t head) {
    std::shared_ptr<const BoundedRows>& heads = heads_[index_of(slot)];
    if (!heads) heads = shared_.heads(slot, c_);
    const std::size_t tokens = problem_.tokens(slot);
    return heads->view().part((batch * problem_.head_count(slot) + head) * tokens, tokens);
}

std::size_t Candidate::kv_head_of(std::size_t head, Tensor slot) const {
    const HeadGroups groups = slot == Tensor::value ? c_.value_groups : c_.groups;
    if (groups == HeadGroups::interleaved) return head % plan_.kv_heads;
    if (groups == HeadGroups::first) return 0;
    const std::size_t block = head / (plan_.heads / plan_.kv_heads);
    return groups == HeadGroups::reversed ? plan_.kv_heads - 1 - block : block;
}

RowsView Candidate::query_of(const RowIndex& at) {
    const RowsView all = unrotated(Tensor::query, at.batch, at.head);
    const std::size_t token = plan_.first_query + at.row;
    const bool rotates = c_.rope.pairs && c_.rope.query_times != 0;
    if (!rotates && !rounds_projected_) return all.part(token);
    query_ = BoundedRows(1, all.columns);
    query_.spread = all.spread;
    std::copy_n(all.at(token), all.columns, query_.at(0));
    if (with_errors_) std::copy_n(all.error_at(token), all.columns, query_.error_at(0));
    round_rows(c_, Rounded::unrotated, query_);
    if (rotates)
        shared_.rotation(c_.rope, Tensor::query, at.batch, c_.rope.query_times)
            ->rotate(model_, token, query_.at(0), query_.error_at(0));
    round_rows(c_, Rounded::projected, query_);
    round_rows(c_, Rounded::score_factors, query_);
    if (with_errors_) query_.set_norms();
    return query_.view();
}

RowsView Candidate::joined(Tensor slot, std::size_t batch, std::size_t kv_head) {
    const bool is_key = slot == Tensor::key;
    const std::span<const double> past =
        problem_.numbers(is_key ? OperandId("past_key") : OperandId("past_value"));
    const int times = is_key ? c_.rope.key_times : c_.rope.value_times;
    const bool rotates = c_.rope.pairs && times != 0;
    if (past.empty() && !rotates && !rounds_projected_) return unrotated(slot, batch, kv_head);
    std::shared_ptr<const BoundedRows>& made =
        (is_key ? keys_ : values_)[batch * plan_.kv_heads + kv_head];
    if (made) return made->view();
    made = shared_.joined(slot, batch, kv_head, c_, [&] {
        const RowsView fresh = unrotated(slot, batch, kv_head);
        const std::size_t d = fresh.columns, cached = past.empty() ? 0 : plan_.past_len;
        BoundedRows rows(cached + fresh.rows, d);
        std::copy_n(past.data() + (batch * plan_.kv_heads + kv_head) * cached * d, cached * d,
                    rows.at(0));
        round_rows(c_, Rounded::inputs, rows.at(0), rows.error_at(0), cached * d);
        for (std::size_t i = 0; i < cached * d; ++i)
            rows.error[i] = model_.of_operand(rows.value[i]);
        std::copy_n(fresh.value, fresh.rows * d, rows.at(cached));
        std::copy_n(fresh.error, fresh.rows * d, rows.error_at(cached));
        round_rows(c_, Rounded::unrotated, rows.at(cached), rows.error_at(cached), fresh.rows * d);
        rows.spread = cached == 0 ? fresh.spread : std::max(fresh.spread, spread_of(d));
        if (rotates) {
            const std::shared_ptr<const RowRotation> rotation =
                shared_.rotation(c_.rope, slot, batch, times);
            for (std::size_t row = 0; row < fresh.rows; ++row)
                rotation->rotate(model_, row, rows.at(cached + row), rows.error_at(cached + row));
        }
        round_rows(c_, Rounded::projected, rows);
        round_rows(c_, is_key ? Rounded::score_factors : Rounded::output_factors, rows);
        rows.set_norms();
        return rows;
    });
    return made->view();
}

QueryRow& Candidate::query_row(const RowIndex& at) {
    QueryRow& q = rows_[at.head];
    if (q.at != at) q.has_scores = q.has_weights = q.has_output = false;
    q.at = at;
    return q;
}

QueryRow& Candidate::scored(const RowIndex& at) {
    QueryRow& q = query_row(at);
    if (!std::exchange(q.has_scores, true)) score(q);
    return q;
}

QueryRow& Candidate::weighed(const RowIndex& at) {
    QueryRow& q = is_linear_ ? query_row(at) : scored(at);
    if (std::exchange(q.has_weights, true)) return q;
    if (is_linear_)
        linear_weights_of(q);
    else
        weigh(q);
    return q;
}

QueryRow& Candidate::answered(const RowIndex& at) {
    QueryRow& q = is_linear_ ? query_row(at) : weighed(at);
    if (std::exchange(q.has_output, true)) return q;
    if (is_linear_)
        linear_output(q);
    else
        weigh_values(q);
    return q;
}

}  // namespace attn
