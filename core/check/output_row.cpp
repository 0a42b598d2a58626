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
    q.moves.clear();
    double longest = 0;
    q.mean_error = 0;
    for (std::size_t k = 0; k < count; ++k) {
        if (q.weight[k] != 0) q.mean_error += q.weight[k] * (q.independent[k] + q.common[k]);
        if (q.weight[k] != 0 || q.weight_error[k] != 0)
            longest = std::max(longest, values.norms[k].two);
    }
    // Weights that are divided by the sum of few may all have been lost: then they add up to 0.
    const bool add_up = c_.blocking == Blocking::before ||
                        (c_.blocking == Blocking::renormalize && q.mean_error < 1);
    if (longest > 0 && std::isfinite(longest) && c_.axis == SoftmaxAxis::keys && add_up &&
        !rounds_weights_ && !rounds(c_, Rounded::output_factors))
        return set_softmax_errors(q, values, weights, scale_for_squares(longest));
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

double scale_for_squares(double longest) {
    return std::exp2(std::clamp(480.0 - std::ilogb(longest), -1000.0, 1000.0));
}

/// Of larger errors than this, the products of two count.
bool State::has_limits(const QueryRow& q) const {
    constexpr double small_mean = 0x1p-6;
    return q.mean_error > small_mean && c_.blocking == Blocking::before;
}

/// How far the errors of the weights of a softmax over keys can move `center`, the sum of m w v:
/// what a weight has too much, the others have too little, so that an error moves the sum from or
/// to what its key adds, the value v times the factor m of dropout. The change is that of w
/// (e^error - 1) (m v - center) over the new sum of weights, of which e^-mean bounds what is left,
/// for a mean error below 1. `values` are those of the keys, or what an output projection makes of
/// them.
std::vector<double> State::softmax_moves(const QueryRow& q, const RowsView& values,
                                         const double* center, double scale) const {
    const std::size_t count = values.rows, d = values.columns;
    std::vector<double> moves(d, 0);
    const double of_sums = spread_of_sums(count), of_common = spread_of(count);
    const double growth = std::exp(q.mean_error);
    for (std::size_t k = 0; k < count; ++k) {
        const double plain = q.weight[k], m = dropped(q, k, 1);
        if (plain == 0 && q.weight_error[k] == 0) continue;
        // The query's error acts on the keys with signs of their own.
        const double grown = growth * growth_of(q.independent[k] + q.common[k]);
        const bool is_bounded = plain != 0 && std::isfinite(grown);
        const double own =
                         (is_bounded ? grown * plain * q.independent[k] : 0) + model_.least_power(),
                     common = is_bounded ? grown * plain * q.common[k] : q.weight_error[k];
        const double root = scale * std::hypot(of_sums * own, of_common * common);
        const double* const value = values.at(k);
        for (std::size_t i = 0; i < d; ++i) {
            const double apart = root * (m * value[i] - center[i]);
            moves[i] += apart * apart;
        }
    }
    for (double& move : moves) move = std::sqrt(move) / scale;
    if (!has_limits(q)) return moves;
    const std::vector<double> limits = largest_moves(q, values, center);
    for (std::size_t i = 0; i < d; ++i)
        moves[i] = q.mean_error < 1 ? std::min(moves[i], limits[i]) : limits[i];
    return moves;
}

void State::set_softmax_errors(QueryRow& q, const RowsView& values,
                               const std::vector<double>& weights, double scale) {
    const std::size_t count = values.rows, d = values.columns;
    std::vector<double> squares(d, 0), roots(d, 0);
    const double of_sums = spread_of_sums(count),
                 of_values = std::max(of_sums, std::min(values.spread, spread_of(count)));
    const bool is_small = q.mean_error < 1, is_limited = has_limits(q);
    for (std::size_t k = 0; k < count; ++k) {
        if (q.weight[k] == 0 && q.weight_error[k] == 0) continue;
        const double w =
            scale *
            (is_small ? weights[k] : weights[k] + std::abs(dropped(q, k, 1)) * q.weight_error[k]);
        const double value_square = of_values * of_values * w * w, product_square = w * w;
        // Weights are rounded after their sum is 1.
        const double rounded_square = 4 * of_sums * of_sums * model_.unit() * model_.unit() * w * w;
        const double *const value = values.at(k), *const value_error = values.error_at(k);
        for (std::size_t i = 0; i < d; ++i) {
            const double x = value[i];
            squares[i] += rounded_square * x * x + value_square * value_error[i] * value_error[i];
            roots[i] += product_square * x * x;
        }
    }
    q.moves = softmax_moves(q, values, q.output.data(), scale);
    q.unmoved_error.resize(d);
    // The sum of the exponentials is rounded, for all of them.
    const double of_all = q.sink_error + model_.gamma(count + 3) + 2 * model_.unit();
    for (std::size_t i = 0; i < d; ++i) {
        const double root = std::sqrt(roots[i]) / scale,
                     size = std::sqrt(static_cast<double>(count)) * root;
        const double x = q.output[i], move = q.moves[i], others = std::sqrt(squares[i]) / scale;
        const double error = is_limited ? move + others : std::hypot(move, others);
        const double rounding = of_all * (std::abs(x) + (is_small ? 0 : error)) +
                                model_.of_sum(count + 4, x, root, size);
        q.output_error[i] = model_.stored(x, error + rounding);
        q.unmoved_error[i] = model_.stored(x, others + rounding);
    }
}

/// How far the errors of the weights can move the sum of m w v: it stays between the values of the
/// keys that may have a weight.
std::vector<double> State::largest_moves(const QueryRow& q, const RowsView& values,
                                         const double* center) const {
    const std::size_t count = values.rows, d = values.columns;
    const std::vector<double>&above = q.weight_error,
          &below = q.weight_below.empty() ? above : q.weight_below;
    struct Move {
        double up = 0, down = 0, highest = 0, lowest = 0, of_others = 0;

        /// `x` is the value less the sum, and the weight may become larger or smaller by these.
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
            moves[i].add(m * value[i] - center[i], above[k], below[k],
                         q.weight[k] + above[k] > none);
    }
    std::vector<double> largest(d);
    for (std::size_t i = 0; i < d; ++i) {
        // A sink is a key whose value is 0.
        if (q.sink_weight != 0)
            moves[i].add(-center[i], lost, std::min(gained, q.sink_weight), true);
        const Move& move = moves[i];
        largest[i] = std::min(std::max(move.up, move.down),
                              std::max(move.highest, -move.lowest) + move.of_others);
    }
    return largest;
}

/// Whether the errors of a row's weights are bounded after the output projection, as moves between
/// its results for the keys: the bounds of the columns before it would count as independent. That
/// is work for each key and column of the result, which is done where errors are large.
bool State::moves_as_projected(const QueryRow& q) const {
    constexpr std::size_t work_limit = 1U << 28U;
    const std::size_t work = plan_.batch * plan_.heads * plan_.rows * plan_.kv_len * plan_.d_out;
    return !q.moves.empty() && has_limits(q) && !rounds_outputs_ && work <= work_limit &&
           c_.merged != HeadSplit::reshaped;
}

/// The column of a head's column c where heads are joined.
std::size_t State::joined_column(std::size_t head, std::size_t c) const {
    return c_.merged == HeadSplit::interleaved ? head + c * plan_.heads : head * plan_.d_v + c;
}

/// Adds to `moves`, for each row of the weight of the output projection, how far the errors of the
/// weights of a head move its result; and to the squares of `roots` the squares.
void State::add_projected_moves(const QueryRow& q, const Rows& weight, std::vector<double>& moves,
                                std::vector<double>& roots) {
    projected_.resize(plan_.batch * plan_.heads);
    ProjectedHead& head = projected_[q.batch * plan_.heads + q.head];
    const auto project = [&](const double* x, double* y) {
        for (std::size_t o = 0; o < weight.rows; ++o)
            y[o] = inner_product(x, head.weight.at(o), head.weight.columns);
    };
    if (head.values.rows == 0) {
        const RowsView values = values_of(q.batch, kv_head_of(q.head));
        head.weight = Rows(weight.rows, values.columns, false);
        for (std::size_t o = 0; o < weight.rows; ++o)
            for (std::size_t c = 0; c < values.columns; ++c)
                head.weight.at(o)[c] = weight.at(o)[joined_column(q.head, c)];
        head.values = Rows(values.rows, weight.rows, false);
        for (std::size_t k = 0; k < values.rows; ++k) project(values.at(k), head.values.at(k));
        double longest = 0;
        for (const double x : head.values.value)
            if (std::isfinite(x)) longest = std::max(longest, std::abs(x));
        head.scale = scale_for_squares(longest);
    }
    std::vector<double> center(weight.rows);
    project(q.output.data(), center.data());
    const RowsView view{head.values.rows, head.values.columns, head.values.at(0)};
    const std::vector<double> of_row = softmax_moves(q, view, center.data(), head.scale);
    for (std::size_t o = 0; o < weight.rows; ++o) {
        moves[o] += of_row[o];
        roots[o] = std::hypot(roots[o], of_row[o]);
    }
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
    constexpr auto out = index_of(Tensor::out);
    const std::optional<ProjectionNumbers>& p = problem_.projection[out];
    const bool projects = p && c_.projects_out;
    const std::shared_ptr<const Rows> weight = projects ? shared_.weight(Tensor::out, c_) : nullptr;
    Rows joined(1, heads * d, with_errors_);
    std::vector<double> moves(projects ? weight->rows : 0, 0), roots = moves;
    double moved_root = 0;
    for (std::size_t i = 0; i < heads; ++i) {
        const auto [h, r] = source_of(i);
        const QueryRow& q = answered(batch, h, r);
        for (std::size_t c = 0; c < d; ++c) joined.value[joined_column(i, c)] = q.output[c];
        if (!with_errors_) continue;
        const bool moves_together = projects && moves_as_projected(q);
        const std::vector<double>& error = moves_together ? q.unmoved_error : q.output_error;
        for (std::size_t c = 0; c < d; ++c) joined.error[joined_column(i, c)] = error[c];
        if (!moves_together) continue;
        for (const double move : q.moves) moved_root = std::hypot(moved_root, move);
        add_projected_moves(q, *weight, moves, roots);
    }
    if (!projects) {
        answer_ = static_cast<Numbers&>(joined);
        return;
    }
    // The errors of a head's columns come from the same weights, but with signs of their own.
    joined.spread = spread_of_sums(joined.columns);
    joined.set_norms();
    start(weight->rows);
    for (std::size_t o = 0; o < weight->rows; ++o) {
        double& y = answer_.value[o];
        y = inner_product(joined.at(0), weight->at(o), joined.columns);
        const bool adds = c_.adds_bias[out] && !p->bias.empty();
        const double bias = adds ? p->bias[o] : 0;
        y += bias;
        if (!with_errors_) continue;
        const ProductError error =
            product_error(model_, y - bias, joined.factor(0), weight->factor(o), joined.columns, 1);
        const double moved =
            std::min(moves[o], spread_of_sums(heads) * roots[o]) +
            moved_root * (weight->norms[o].error_two + 2 * model_.unit() * weight->norms[o].two);
        answer_.error[o] =
            model_.stored(y, error.independent + error.common + moved + model_.of_operand(bias) +
                                 model_.gamma(joined.columns + 1) * std::abs(bias));
    }
    round_rows(c_, Rounded::context, answer_.value.data(), answer_error(), weight->rows);
}

}  // namespace attn::check_detail
