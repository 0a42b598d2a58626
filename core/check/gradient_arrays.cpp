// Rows of the arrays of a backward pass.
#include <limits>

#include "core/check/gradients.hpp"
#include "core/check/their_array.hpp"

namespace attn {

void Candidate::answer_lanes(const Lanes& x, std::size_t row) {
    reset(answer_, x.columns);
    answer_variance_.assign(x.columns, 0);
    for (std::size_t i = 0; i < x.columns; ++i) {
        const Lane one = x.at(row, i);
        answer_.value[i] = one.value;
        if (!with_errors_) continue;
        answer_.error[i] = model_.stored(one.value, lambda * std::sqrt(one.squares));
        answer_variance_[i] = one.variance;
    }
}

void Candidate::fill_gradient(ArrayId array, const RowIndex& at) {
    if (!has_gradients(array)) {
        const std::size_t columns = shape_of_all_axes(plan_, array)[3];
        answer_variance_.assign(columns, 0);
        answer_.value.assign(columns, std::numeric_limits<double>::quiet_NaN());
        answer_.error.assign(columns, 0);
        answer_.below.clear();
        return;
    }
    const auto answer = [&](const Lane& x) {
        Lanes one(1, 1, with_errors_);
        one.set(0, 0, x);
        answer_lanes(one, 0);
    };
    const std::size_t past = plan_.kv_len - problem_.tokens(Tensor::key);
    if (array == "loss") return answer(loss());
    if (array == "grad_head_outputs")
        return answer_lanes(output_gradients(at.batch), at.head * plan_.rows + at.row);
    if (array == "grad_queries")
        return is_linear_ ? answer_lanes(pass(at.batch, at.head)[0], at.row)
                          : answer_lanes(query_gradient(at), 0);
    if (array == "grad_keys" || array == "grad_values")
        return answer_lanes(
            joined_gradients(array == "grad_keys" ? Tensor::key : Tensor::value, at.batch, at.head),
            past + at.row);
    if (array == "grad_sink") {
        Lane sum, size;
        for (std::size_t i = 0; i < plan_.batch * plan_.heads; ++i) {
            if (c_.sink.size() != 1 && i % plan_.heads != at.head) continue;
            const Lanes& one = pass(i / plan_.heads, i % plan_.heads)[3];
            sum = sum + one.at(0, 0);
            size = size + one.at(0, 1);
        }
        // The sink is rounded, for all rows.
        const double moved = size.value * model_.of_operand(sink_of_head(at.head));
        sum = sum + Lane{0, square(moved), square(moved)};
        return answer(lane_model_.finished(sum, plan_.batch * plan_.rows));
    }
    if (array.row().counts_queries_and_keys()) return fill_of_queries_and_keys(array, at);
    if (array.base().row().is_operand()) return fill_of_operand(array, at);
    if (array == "grad_inputs")
        return answer_lanes(source_gradients(Tensor::query), at.batch * plan_.q_len + at.row);
    constexpr ArrayId weights[] = {"grad_W_query", "grad_W_key", "grad_W_value", "grad_W_out"},
                      biases[] = {"grad_b_query", "grad_b_key", "grad_b_value", "grad_b_out"};
    for (std::size_t i = 0; i < 4; ++i) {
        if (array != weights[i] && array != biases[i]) continue;
        const ProjectionNumbers& p = *problem_.projection[i];
        const SumsOfArrays& sum = parameter_gradients(static_cast<Tensor>(i));
        const std::size_t d_out = p.d_out / p.groups, first = at.head * d_out;
        const bool is_bias = array == biases[i], turns = plan_.is_transposed(array);
        Lanes row(1, is_bias || turns ? d_out : p.d_in, with_errors_);
        for (std::size_t c = 0; c < row.columns; ++c) {
            if (is_bias) {
                row.set(0, c, sum[1].at(0, first + c));
                continue;
            }
            std::size_t o = turns ? c : at.row, in = turns ? at.row : c;
            if (c_.backward.transposes_weights) {  // a matrix of the other shape, read as this one
                const std::size_t index = o * p.d_in + in;
                o = index % d_out;
                in = index / d_out;
            }
            row.set(0, c, sum[0].at(first + o, in));
        }
        return answer_lanes(row, 0);
    }
}

void Candidate::fill_of_queries_and_keys(ArrayId array, const RowIndex& at) {
    const BackwardRow& b = backward_row(at);
    std::vector<Lane> all = array == "grad_capped_scores"       ? b.capped
                            : array == "grad_scaled_scores"     ? b.scaled
                            : array == "grad_scores"            ? b.all_with_term()
                            : array == "grad_attention_weights" ? b.by_weight
                                                                : b.before;
    if (array == "grad_attention_weights" || array == "grad_weights_before_dropout") {
        // The product also has what masked keys hold.
        const QueryRow& q = answered(at);
        for (std::size_t k = 0; k < all.size(); ++k) {
            if (q.is_allowed[k] != 0 || q.weight.value[k] != 0) continue;
            all[k] = lane_model_.inner(
                output_gradients(at.batch), at.head * plan_.rows + at.row,
                joined_lanes(Tensor::value, at.batch, kv_head_of(at.head, Tensor::value)), k);
            if (array == "grad_weights_before_dropout") all[k] = all[k].times(dropped(q, k, 1));
        }
    }
    Lanes row(1, all.size(), with_errors_);
    for (std::size_t k = 0; k < all.size(); ++k) row.set(0, k, all[k]);
    answer_lanes(row, 0);
}

/// In the shape in which they are given.
void Candidate::fill_of_operand(ArrayId array, const RowIndex& at) {
    const std::array<std::size_t, 4> shape = shape_of_all_axes(plan_, array);
    Lanes row(1, shape[3], with_errors_);
    const auto take = [&](const Lanes& from, std::size_t index, std::size_t first = 0) {
        for (std::size_t c = 0; c < from.columns; ++c) row.set(0, first + c, from.at(index, c));
    };
    const std::size_t index = at.batch * shape[2] + at.row;
    const bool is_key = array == "grad_key" || array == "grad_past_key";
    if (array == "grad_context") {
        take(source_gradients(Tensor::key), index);
    } else if (array == "grad_value_input") {
        take(source_gradients(Tensor::value), index);
    } else if (array == "grad_past_key" || array == "grad_past_value") {
        take(joined_gradients(is_key ? Tensor::key : Tensor::value, at.batch, at.head), at.row);
    } else if (array == "grad_mask" || array == "grad_key_padding_mask") {
        const std::size_t which = array == "grad_mask" ? 0 : 1;
        const Lanes& sum = sums(Sums::mask, which, [&] {
            Lanes all(shape[0] * shape[1] * shape[2], shape[3], with_errors_);
            for (std::size_t i = 0; i < plan_.batch * plan_.heads; ++i) {
                const Lanes& one = pass(i / plan_.heads, i % plan_.heads)[4 + which];
                const std::size_t to = (shape[0] == 1 ? 0 : i / plan_.heads) * shape[1] +
                                       (shape[1] == 1 ? 0 : i % plan_.heads);
                for (std::size_t q = 0; q < one.rows; ++q)
                    LaneModel::add({1}, one, q, 0, all, to * shape[2] + q);
            }
            lane_model_.finish(all, plan_.batch * plan_.heads * plan_.rows);
            return SumsOfArrays{std::move(all)};
        })[0];
        take(sum, (at.batch * shape[1] + at.head) * shape[2] + at.row);
    } else if (array == "grad_query" || is_key || array == "grad_value") {
        const Tensor slot = array == "grad_query" ? Tensor::query
                            : is_key              ? Tensor::key
                                                  : Tensor::value;
        const std::size_t heads = problem_.head_count(slot), tokens = problem_.tokens(slot);
        const bool computes_all = is_linear_ || c_.qk_norm;
        if (slot == Tensor::query && !plan_.packed && !computes_all) {
            // One query needs no others.
            if (at.row >= plan_.first_query && at.row < plan_.first_query + plan_.rows) {
                row = query_gradient({at.batch, at.head, at.row - plan_.first_query});
                turn_back(slot, at.batch, at.row, row, 0);
            }
            return answer_lanes(row, 0);
        }
        const Lanes& all = slot_gradients(slot);
        for (std::size_t h = 0; h < (plan_.packed ? heads : 1); ++h)
            take(all, (at.batch * heads + at.head + h) * tokens + at.row, h * all.columns);
    } else {  // gates and states, of the heads of a group
        const std::size_t part = array == "grad_decay"  ? 3
                                 : array == "grad_beta" ? 4
                                                        : 5,
                          group = plan_.heads / plan_.kv_heads;
        const bool is_packed = plan_.packed && part != 5;
        Lanes sum(1, shape[3], with_errors_);
        for (std::size_t i = 0; i < plan_.heads; ++i) {
            const std::size_t kv_head = i / group;
            if (!is_packed && kv_head != at.head) continue;
            const Lanes& one = pass(at.batch, i)[part];
            for (std::size_t c = 0; c < one.columns; ++c) {
                const std::size_t to = is_packed && shape[3] != 1 ? kv_head * one.columns + c : c;
                sum.set(0, to, sum.at(0, to) + one.at(at.row, c));
            }
        }
        lane_model_.finish(sum, group);
        row = std::move(sum);
    }
    answer_lanes(row, 0);
}

}  // namespace attn
