// The outputs of heads and the context vectors of one query.
#include <algorithm>
#include <cmath>

#include "core/check/candidate_state.hpp"

namespace attn::check_detail {

void State::weigh_values(QueryRow& q) {
    const RowsView values = values_of(q.batch, kv_head_of(q.head));
    const std::size_t count = values.rows, d = values.columns;
    q.output.assign(d, 0);
    std::vector<double>& weights = scratch_;
    weights.resize(count);
    std::vector<double> weight_error;
    for (std::size_t k = 0; k < count; ++k) weights[k] = dropped(q, k, q.weight[k]);
    if (with_errors_)
        for (std::size_t k = 0; k < count; ++k)
            weight_error.push_back(dropped(q, k, q.weight_error[k]));
    round_rows(c_, Rounded::output_factors, weights.data(),
               with_errors_ ? weight_error.data() : nullptr, count);
    double* const output = q.output.data();
    for (std::size_t k = 0; k < count; ++k) {
        const double w = weights[k];
        // Values of masked keys take no part, even if they are infinite or NaN.
        if (w == 0 && (q.is_allowed[k] == 0 || std::isinf(q.scores.value[k]))) continue;
        const double* const value = values.at(k);
        for (std::size_t i = 0; i < d; ++i) output[i] += w * value[i];
    }
    if (with_errors_) {
        // A common factor of all weights of the row moves the output towards 0, the errors of
        // single weights move it towards or away from their values.
        q.output_error.assign(d, 0);
        std::vector<double> squares(d, 0), roots(d, 0);
        double largest = 0;
        for (std::size_t k = 0; k < count; ++k)
            if (weights[k] != 0) largest = std::max(largest, q.independent[k] + q.common[k]);
        const bool is_softmax_row = c_.axis == SoftmaxAxis::keys &&
                                    c_.blocking != Blocking::after && !rounds_weights_ &&
                                    !rounds(c_, Rounded::output_factors) && !c_.drops &&
                                    c_.weight_factor == 1 && c_.sink.empty() && largest < 0.125;
        const double of_sums = spread_of_sums(count), of_common = spread_of(count),
                     of_values = std::max(of_sums, std::min(values.spread, of_common));
        double* const error = q.output_error.data();
        for (std::size_t k = 0; k < count; ++k) {
            const double w = std::abs(weights[k]);
            const double* const value = values.at(k);
            const double* const value_error = values.error_at(k);
            const double of_weight = weight_error[k];
            if (w == 0 && of_weight == 0) continue;
            if (is_softmax_row) {
                // The query's error acts on the keys with signs of their own.
                const double own = 1.25 * w * q.independent[k] + model_.least_power(),
                             common = w == 0 ? of_weight : 1.25 * w * q.common[k];
                const double weight_square =
                    of_sums * of_sums * own * own + of_common * of_common * common * common;
                const double value_square = of_values * of_values * w * w;
                for (std::size_t i = 0; i < d; ++i) {
                    const double x = value[i], apart = x - output[i];
                    squares[i] += weight_square * apart * apart +
                                  value_square * value_error[i] * value_error[i];
                    roots[i] += w * w * x * x;
                }
            } else {
                for (std::size_t i = 0; i < d; ++i) {
                    const double x = value[i];
                    error[i] += of_weight * std::abs(x) + (w + of_weight) * value_error[i];
                    roots[i] += w * w * x * x;
                }
            }
        }
        const auto sum_error = [&](double sum, double root) {
            const double size = std::sqrt(static_cast<double>(count)) * root;
            return model_.of_sum(count + 4, sum, root, size);
        };
        for (std::size_t i = 0; i < d; ++i)
            error[i] = model_.stored(output[i], error[i] + std::sqrt(squares[i]) +
                                                    sum_error(output[i], std::sqrt(roots[i])));
    }
    if (rounds_outputs_)
        round_rows(c_, Rounded::outputs, q.output.data(),
                   with_errors_ ? q.output_error.data() : nullptr, d);
}

void State::fill_output(ArrayId, std::size_t batch, std::size_t head, std::size_t row) {
    const QueryRow& q = answered(batch, head, row);
    start(q.output.size());
    answer_.value = q.output;
    if (with_errors_) answer_.error = q.output_error;
}

void State::fill_context(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    if (plan_.shown.separate_heads && !plan_.parameters.out_proj)
        return fill_output(array, batch, head, row);
    const std::size_t heads = plan_.heads, d = plan_.d_v;
    Rows joined(1, heads * d, with_errors_);
    const auto copy = [&](const QueryRow& q, std::size_t from, std::size_t to, std::size_t step,
                          std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            joined.value[to + i * step] = q.output[from + i];
            if (with_errors_) joined.error[to + i * step] = q.output_error[from + i];
        }
    };
    for (std::size_t i = 0; i < heads; ++i) {
        if (c_.merged == HeadSplit::reshaped) {
            // Rows of heads in memory, (heads, rows, d), are read in order.
            const std::size_t place = row * heads + i;
            copy(answered(batch, place / plan_.rows, place % plan_.rows), 0, i * d, 1, d);
        } else if (c_.merged == HeadSplit::interleaved) {
            copy(answered(batch, i, row), 0, i, heads, d);
        } else {
            copy(answered(batch, i, row), 0, i * d, 1, d);
        }
    }
    constexpr auto out = index_of(Tensor::out);
    const std::optional<ProjectionNumbers>& p = problem_.projection[out];
    if (!p) {
        answer_ = static_cast<Numbers&>(joined);
        return;
    }
    // The errors of a head's columns come from the same weights.
    joined.spread = std::min(lambda / 2, spread_of(joined.columns));
    joined.set_norms();
    const std::shared_ptr<const Rows> weight = shared_.weight(Tensor::out, c_);
    start(weight->rows);
    for (std::size_t o = 0; o < weight->rows; ++o) {
        double& y = answer_.value[o];
        y = inner_product(joined.at(0), weight->at(o), joined.columns);
        const bool adds = c_.adds_bias[out] && !p->bias.empty();
        const double bias = adds ? p->bias[o] : 0;
        y += bias;
        if (!with_errors_) continue;
        const ProductError error = product_error(model_, y - bias, joined.norms[0], joined.spread,
                                                 weight->norms[o], weight->spread, joined.columns);
        answer_.error[o] =
            model_.stored(y, error.independent + error.common + model_.of_operand(bias) +
                                 model_.gamma(joined.columns + 1) * std::abs(bias));
    }
    round_rows(c_, Rounded::context, answer_.value.data(), answer_error(), weight->rows);
}

}  // namespace attn::check_detail
