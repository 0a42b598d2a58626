// The outputs of heads and the context vectors of one query.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check/candidate_state.hpp"

namespace attn::check_detail {

double growth_of(double error) {
    if (error > 4) return std::numeric_limits<double>::infinity();
    return error == 0 ? 1 : std::expm1(error) / error;
}

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
    if (with_errors_) set_output_errors(q, values, weights, weight_error);
    if (rounds_outputs_)
        round_rows(c_, Rounded::outputs, q.output.data(),
                   with_errors_ ? q.output_error.data() : nullptr, d);
}

void State::set_output_errors(QueryRow& q, const RowsView& values,
                              const std::vector<double>& weights,
                              const std::vector<double>& weight_error) {
    const std::size_t count = values.rows, d = values.columns;
    q.output_error.assign(d, 0);
    double mean = 0, longest = 0, heaviest = 0;
    for (std::size_t k = 0; k < count; ++k) {
        if (q.weight[k] == 0) continue;
        mean += q.weight[k] * (q.independent[k] + q.common[k]);
        longest = std::max(longest, values.norms[k].two);
        heaviest = std::max(heaviest, std::abs(weights[k]));
    }
    const bool has_squares = longest < 0x1p400 && longest > 0x1p-400 && heaviest > 0x1p-400;
    // Weights that are divided by the sum of few may all have been lost: then they add up to 0.
    const bool add_up =
        c_.blocking == Blocking::before || (c_.blocking == Blocking::renormalize && mean < 1);
    if (has_squares && c_.axis == SoftmaxAxis::keys && add_up && !rounds_weights_ &&
        !rounds(c_, Rounded::output_factors))
        return set_softmax_errors(q, values, weights, mean);
    for (std::size_t k = 0; k < count; ++k) {
        const double w = std::abs(weights[k]), of_weight = std::abs(weight_error[k]);
        if (w == 0 && of_weight == 0) continue;
        // The sums of all sizes are rounded, too.
        const double rounded = of_weight + model_.gamma_of_products(count + 4) * w;
        const double *const value = values.at(k), *const value_error = values.error_at(k);
        for (std::size_t i = 0; i < d; ++i)
            q.output_error[i] += rounded * std::abs(value[i]) + (w + of_weight) * value_error[i];
    }
    const double least = static_cast<double>(count) * model_.least();
    for (std::size_t i = 0; i < d; ++i)
        q.output_error[i] = model_.stored(q.output[i], q.output_error[i] + least);
}

/// The errors of a row of a softmax over keys: what a weight has too much, the others have too
/// little, so that an error moves the output from or to what its key adds, the value times the
/// factor m of dropout. The output is the sum of m w v, its change that of w (e^error - 1) (m v -
/// output) over the new sum of weights, of which e^-mean bounds what is left, for a mean error
/// below 1.
void State::set_softmax_errors(QueryRow& q, const RowsView& values,
                               const std::vector<double>& weights, double mean) {
    const std::size_t count = values.rows, d = values.columns;
    std::vector<double> moves(d, 0), squares(d, 0), roots(d, 0);
    const double of_sums = spread_of_sums(count), of_common = spread_of(count),
                 of_values = std::max(of_sums, std::min(values.spread, of_common));
    const bool is_small = mean < 1;
    const double growth = std::exp(mean);
    for (std::size_t k = 0; k < count; ++k) {
        const double plain = q.weight[k], m = dropped(q, k, 1);
        if (plain == 0 && q.weight_error[k] == 0) continue;
        // The query's error acts on the keys with signs of their own.
        const double grown = growth * growth_of(q.independent[k] + q.common[k]);
        const bool is_bounded = plain != 0 && std::isfinite(grown);
        const double own =
                         (is_bounded ? grown * plain * q.independent[k] : 0) + model_.least_power(),
                     common = is_bounded ? grown * plain * q.common[k] : q.weight_error[k];
        const double weight_square =
            of_sums * of_sums * own * own + of_common * of_common * common * common;
        const double w = is_small ? weights[k] : weights[k] + std::abs(m) * q.weight_error[k];
        const double value_square = of_values * of_values * w * w, product_square = w * w;
        // Weights are rounded after their sum is 1.
        const double rounded_square = 4 * of_sums * of_sums * model_.unit() * model_.unit() * w * w;
        const double *const value = values.at(k), *const value_error = values.error_at(k);
        for (std::size_t i = 0; i < d; ++i) {
            const double x = value[i], apart = m * x - q.output[i];
            moves[i] += weight_square * apart * apart;
            squares[i] += rounded_square * x * x + value_square * value_error[i] * value_error[i];
            roots[i] += product_square * x * x;
        }
    }
    // Of larger errors than these, the products of two count.
    constexpr double small_mean = 0x1p-6;
    const std::vector<double> limits = mean > small_mean && c_.blocking == Blocking::before
                                           ? largest_moves(q, values)
                                           : std::vector<double>();
    // The sum of the exponentials is rounded, for all of them.
    const double of_all = q.sink_error + model_.gamma(count + 3) + 2 * model_.unit();
    for (std::size_t i = 0; i < d; ++i) {
        const double root = std::sqrt(roots[i]),
                     size = std::sqrt(static_cast<double>(count)) * root;
        double error = std::sqrt(moves[i] + squares[i]);
        if (!limits.empty()) {
            const double limited = limits[i] + std::sqrt(squares[i]);
            error = is_small ? std::min(error, limited) : limited;
        }
        q.output_error[i] = model_.stored(
            q.output[i], error + of_all * (std::abs(q.output[i]) + (is_small ? 0 : error)) +
                             model_.of_sum(count + 4, q.output[i], root, size));
    }
}

/// How far the errors of the weights can move the output: it stays between the values of the keys
/// that may have a weight.
std::vector<double> State::largest_moves(const QueryRow& q, const RowsView& values) const {
    const std::size_t count = values.rows, d = values.columns;
    const std::vector<double>&above = q.weight_error,
          &below = q.weight_below.empty() ? above : q.weight_below;
    struct Move {
        double up = 0, down = 0, highest = 0, lowest = 0, of_others = 0;

        /// `x` is the value less the output, and the weight may become larger or smaller by these.
        void add(double x, double larger, double smaller, bool may_count) {
            up += x > 0 ? larger * x : smaller * -x;
            down += x > 0 ? smaller * x : larger * -x;
            if (may_count) {
                highest = std::max(highest, x);
                lowest = std::min(lowest, x);
            } else {
                of_others += larger * std::abs(x);
            }
        }
    };
    std::vector<Move> moves(d);
    constexpr double none = 0x1p-40;
    double gained = 0, lost = 0;
    for (std::size_t k = 0; k < count; ++k) {
        if (q.weight[k] == 0 && above[k] == 0) continue;
        gained += above[k];
        lost += below[k];
        const double m = dropped(q, k, 1);
        const double* const value = values.at(k);
        for (std::size_t i = 0; i < d; ++i)
            moves[i].add(m * value[i] - q.output[i], above[k], below[k],
                         q.weight[k] + above[k] > none);
    }
    std::vector<double> largest(d);
    for (std::size_t i = 0; i < d; ++i) {
        // A sink is a key whose value is 0.
        if (q.sink_weight != 0)
            moves[i].add(-q.output[i], std::min(lost, 1 - q.sink_weight),
                         std::min(gained, q.sink_weight), true);
        const Move& move = moves[i];
        largest[i] = std::min(std::max(move.up, move.down),
                              std::max(move.highest, -move.lowest) + move.of_others);
    }
    return largest;
}

void State::fill_output(ArrayId, std::size_t batch, std::size_t head, std::size_t row) {
    const QueryRow& q = answered(batch, head, row);
    start(q.output.size());
    answer_.value = q.output;
    if (with_errors_) answer_.error = q.output_error;
}

void State::fill_context(ArrayId array, std::size_t batch, std::size_t head, std::size_t row) {
    // The head and row whose output is read: if reshaped, (heads, rows, d) in memory in order.
    const auto source_of = [&](std::size_t h) {
        const std::size_t place =
            c_.merged == HeadSplit::reshaped ? row * plan_.heads + h : h * plan_.rows + row;
        return std::pair(place / plan_.rows, place % plan_.rows);
    };
    if (plan_.shown.separate_heads && !plan_.parameters.out_proj) {
        const auto [h, r] = source_of(head);
        return fill_output(array, batch, h, r);
    }
    const std::size_t heads = plan_.heads, d = plan_.d_v;
    const bool interleaves = c_.merged == HeadSplit::interleaved;
    Rows joined(1, heads * d, with_errors_);
    for (std::size_t i = 0; i < heads; ++i) {
        const auto [h, r] = source_of(i);
        const QueryRow& q = answered(batch, h, r);
        for (std::size_t c = 0; c < d; ++c) {
            const std::size_t column = interleaves ? i + c * heads : i * d + c;
            joined.value[column] = q.output[c];
            if (with_errors_) joined.error[column] = q.output_error[c];
        }
    }
    constexpr auto out = index_of(Tensor::out);
    const std::optional<ProjectionNumbers>& p = problem_.projection[out];
    if (!p || !c_.projects_out) {
        answer_ = static_cast<Numbers&>(joined);
        return;
    }
    // The errors of a head's columns come from the same weights, but with signs of their own.
    joined.spread = spread_of_sums(joined.columns);
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
