#include "core/check/candidate_state.hpp"

#include <algorithm>
#include <utility>

#include "core/check/rotation.hpp"

namespace attn::check_detail {
State::State(Shared& shared, Conventions conventions, bool with_errors)
    : shared_(shared), problem_(shared.problem()), plan_(problem_.plan), model_(shared.model()),
      c_(std::move(conventions)), with_errors_(with_errors), is_linear_(plan_.rule.has_value()),
      rounds_projected_(rounds(c_, Rounded::projected) || rounds(c_, Rounded::unrotated) ||
                        rounds(c_, Rounded::score_factors) || rounds(c_, Rounded::output_factors)),
      rounds_weights_(rounds(c_, Rounded::weights)), rounds_outputs_(rounds(c_, Rounded::outputs)),
      heads_(3), keys_(plan_.batch * plan_.kv_heads), values_(plan_.batch * plan_.kv_heads),
      rows_(plan_.heads) {}

void State::start(std::size_t columns) {
    answer_.rows = 1;
    answer_.columns = columns;
    answer_.value.assign(columns, 0);
    answer_.error.assign(with_errors_ ? columns : 0, 0);
    answer_.below.clear();
}

void State::answer_rows(const RowsView& rows, std::size_t row) {
    start(rows.columns);
    std::copy_n(rows.at(row), rows.columns, answer_.value.data());
    if (with_errors_) std::copy_n(rows.error_at(row), rows.columns, answer_.error.data());
}

RowsView State::unrotated(Tensor slot, std::size_t batch, std::size_t head) {
    std::shared_ptr<const Heads>& heads = heads_[index_of(slot)];
    if (!heads) heads = shared_.heads(slot, c_);
    const std::size_t first = (batch * heads->heads + head) * heads->tokens;
    return {heads->tokens,
            heads->columns,
            heads->at(first),
            heads->error_at(first),
            heads->norms.data() + first,
            heads->spread};
}

std::size_t State::kv_head_of(std::size_t head) const {
    if (c_.groups == HeadGroups::interleaved) return head % plan_.kv_heads;
    if (c_.groups == HeadGroups::first) return 0;
    return head / (plan_.heads / plan_.kv_heads);
}

RowsView State::query_of(std::size_t batch, std::size_t head, std::size_t row) {
    const RowsView all = unrotated(Tensor::query, batch, head);
    const std::size_t token = plan_.first_query + row;
    const bool rotates = c_.rope.pairs && c_.rope.query_times != 0;
    if (!rotates && !rounds_projected_)
        return {1, all.columns, all.at(token), all.error_at(token), all.norms + token, all.spread};
    query_ = Rows(1, all.columns, with_errors_);
    query_.spread = all.spread;
    std::copy_n(all.at(token), all.columns, query_.at(0));
    if (with_errors_) std::copy_n(all.error_at(token), all.columns, query_.error_at(0));
    round_rows(c_, Rounded::unrotated, query_.at(0), query_.error_at(0), all.columns);
    if (rotates)
        rotate_row(model_,
                   *shared_.rotation(c_.rope, c_.rope.first_query, all.rows, c_.rope.query_times),
                   *c_.rope.pairs, token, query_.at(0), query_.error_at(0));
    round_rows(c_, Rounded::projected, query_.at(0), query_.error_at(0), all.columns);
    round_rows(c_, Rounded::score_factors, query_.at(0), query_.error_at(0), all.columns);
    query_.set_norms();
    return {1, all.columns, query_.at(0), query_.error_at(0), query_.norms.data(), query_.spread};
}

RowsView State::joined(Tensor slot, std::size_t batch, std::size_t kv_head) {
    const bool is_key = slot == Tensor::key;
    const std::vector<double>& past = is_key ? problem_.past_key : problem_.past_value;
    const int times = is_key ? c_.rope.key_times : c_.rope.value_times;
    const bool rotates = c_.rope.pairs && times != 0;
    if (past.empty() && !rotates && !rounds_projected_) return unrotated(slot, batch, kv_head);
    std::shared_ptr<const Rows>& made =
        (is_key ? keys_ : values_)[batch * plan_.kv_heads + kv_head];
    if (!made)
        made = shared_.joined(slot, batch, kv_head, c_, [&] {
            const RowsView fresh = unrotated(slot, batch, kv_head);
            const std::size_t d = fresh.columns, cached = past.empty() ? 0 : plan_.past_len;
            Rows rows(cached + fresh.rows, d, true);
            std::copy_n(past.data() + (batch * plan_.kv_heads + kv_head) * cached * d, cached * d,
                        rows.at(0));
            round_rows(c_, Rounded::inputs, rows.at(0), nullptr, cached * d);
            std::copy_n(fresh.value, fresh.rows * d, rows.at(cached));
            for (std::size_t i = 0; i < cached * d; ++i)
                rows.error[i] = model_.of_operand(rows.value[i]);
            std::copy_n(fresh.error, fresh.rows * d, rows.error_at(cached));
            round_rows(c_, Rounded::unrotated, rows.at(cached), rows.error_at(cached),
                       fresh.rows * d);
            rows.spread = cached == 0 ? fresh.spread : std::max(fresh.spread, spread_of(d));
            if (rotates) {
                const std::shared_ptr<const Rotation> rotation =
                    shared_.rotation(c_.rope, c_.rope.first_key, fresh.rows, times);
                for (std::size_t row = 0; row < fresh.rows; ++row)
                    rotate_row(model_, *rotation, *c_.rope.pairs, row, rows.at(cached + row),
                               rows.error_at(cached + row));
            }
            for (Rounded what :
                 {Rounded::projected, is_key ? Rounded::score_factors : Rounded::output_factors})
                round_rows(c_, what, rows.value.data(), rows.error.data(), rows.value.size());
            rows.set_norms();
            return rows;
        });
    return {made->rows,        made->columns,      made->at(0),
            made->error_at(0), made->norms.data(), made->spread};
}

RowsView State::keys_of(std::size_t batch, std::size_t kv_head) {
    return joined(Tensor::key, batch, kv_head);
}

RowsView State::values_of(std::size_t batch, std::size_t kv_head) {
    return joined(Tensor::value, batch, kv_head);
}

QueryRow& State::query_row(std::size_t batch, std::size_t head, std::size_t row) {
    QueryRow& q = rows_[head];
    if (q.batch != batch || q.row != row || q.head != head)
        q.has_scores = q.has_weights = q.has_output = false;
    q.batch = batch;
    q.head = head;
    q.row = row;
    return q;
}

QueryRow& State::scored(std::size_t batch, std::size_t head, std::size_t row) {
    QueryRow& q = query_row(batch, head, row);
    if (!std::exchange(q.has_scores, true)) score(q);
    return q;
}

QueryRow& State::weighed(std::size_t batch, std::size_t head, std::size_t row) {
    if (is_linear_) {
        QueryRow& q = query_row(batch, head, row);
        if (!std::exchange(q.has_weights, true)) linear_weights_of(q);
        return q;
    }
    QueryRow& q = scored(batch, head, row);
    if (!std::exchange(q.has_weights, true)) weigh(q);
    return q;
}

QueryRow& State::answered(std::size_t batch, std::size_t head, std::size_t row) {
    if (is_linear_) {
        QueryRow& q = query_row(batch, head, row);
        if (!std::exchange(q.has_output, true)) linear_output(q);
        return q;
    }
    QueryRow& q = weighed(batch, head, row);
    if (!std::exchange(q.has_output, true)) weigh_values(q);
    return q;
}

}  // namespace attn::check_detail
