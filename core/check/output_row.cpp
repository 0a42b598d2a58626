// The outputs of heads and the context vectors of one query.

#include "core/check/evaluate.hpp"

namespace attn {

namespace {

/// Weights times values of this length, and times this power of 2, have squares within the range of
/// float64: of a sum whose heaviest value is 0, they may be far smaller than the length.
double scale_for_squares(double longest) {
    return std::exp2(std::clamp(480.0 - std::ilogb(longest), -1000.0, 1000.0));
}

}  // namespace

double growth_of(double error) {
    if (error > 4) return HUGE_VAL;
    return error == 0 ? 1 : std::expm1(error) / error;
}

void Candidate::weigh_values(QueryRow& q) {
    const RowsView values = joined(Tensor::value, q.at.batch, kv_head_of(q.at.head, Tensor::value));
    const std::size_t count = values.rows, d = values.columns;
    Numbers& weights = dropped_;
    weights.value.resize(count);
    weights.error.assign(count, 0);
    for (std::size_t k = 0; k < count; ++k) {
        weights.value[k] = dropped(q, k, q.weight.value[k]);
        if (with_errors_)
            weights.error[k] = dropped(q, k, c_.prob_mod ? q.weight.bound(k) : q.weight.error[k]);
    }
    round_rows(c_, Rounded::output_factors, weights);
    reset(q.output, d);
    double* const output = q.output.value.data();
    for (std::size_t k = 0; k < count; ++k) {
        const double w = weights.value[k];
        // Values of masked keys take no part, even if they are infinite or NaN.
        if (w == 0 && (q.is_allowed[k] == 0 || std::isinf(q.scores.value[k]))) continue;
        const double* const value = values.at(k);
        for (std::size_t i = 0; i < d; ++i) output[i] += w * value[i];
    }
    if (with_errors_) set_output_errors(q, values, weights);
    round_rows(c_, Rounded::outputs, q.output);
}

void Candidate::set_output_errors(QueryRow& q, const RowsView& values,
                                  const Numbers& weights) const {
    const std::size_t count = values.rows, d = values.columns;
    const std::vector<double>&plain = q.weight.value, &plain_error = q.weight.error;
    std::vector<double>& error = q.output.error;
    q.moves.clear();
    double longest = 0;
    q.mean_error = 0;
    for (std::size_t k = 0; k < count; ++k) {
        if (plain[k] != 0) q.mean_error += plain[k] * (q.independent[k] + q.common[k]);
        if (plain[k] != 0 || plain_error[k] != 0) longest = std::max(longest, values.norms[k].two);
    }
    // Weights that are divided by the sum of few may all have been lost: then they add up to 0.
    const bool add_up = !c_.prob_mod && !c_.weights &&
                        (c_.blocking == Blocking::before ||
                         (c_.blocking == Blocking::renormalize && q.mean_error < 1));
    if (longest > 0 && std::isfinite(longest) && c_.axis == SoftmaxAxis::keys && add_up &&
        !rounds(c_, Rounded::weights) && !rounds(c_, Rounded::output_factors))
        return set_softmax_errors(q, values, weights.value, scale_for_squares(longest));
    for (std::size_t k = 0; k < count; ++k) {
        const double w = std::abs(weights.value[k]), of_weight = std::abs(weights.error[k]);
        if (w == 0 && of_weight == 0) continue;
        // The sums of all sizes are rounded, too.
        const double rounded = of_weight + model_.gamma_of_products(count + 4) * w;
        const double *const value = values.at(k), *const value_error = values.error_at(k);
        for (std::size_t i = 0; i < d; ++i)
            error[i] += rounded * std::abs(value[i]) + (w + of_weight) * value_error[i];
    }
    const double least = static_cast<double>(count) * model_.least();
    for (std::size_t i = 0; i < d; ++i)
        error[i] = model_.stored(q.output.value[i], error[i] + least);
}

/// Of larger errors than this, the products of two count.
bool Candidate::has_limits(const QueryRow& q) const {
    constexpr double small_mean = 0x1p-6;
    return q.mean_error > small_mean && c_.blocking == Blocking::before;
}

/// How far the errors of the weights of a softmax over keys can move `center`, the sum of m w v:
/// what a weight has too much, the others have too little, so that an error moves the sum from or
/// to what its key adds, the value v times the factor m of dropout. The change is that of w
/// (e^error - 1) (m v - center) over the new sum of weights, of which e^-mean bounds what is left,
/// for a mean error below 1. `values` are those of the keys, or what an output projection makes of
/// them.
std::vector<double> Candidate::softmax_moves(const QueryRow& q, const RowsView& values,
                                             const double* center, double scale) const {
    const std::size_t count = values.rows, d = values.columns;
    std::vector<double> moves(d, 0);
    const double of_sums = spread_of_sums(count), of_common = spread_of(count);
    const double growth = std::exp(q.mean_error);
    for (std::size_t k = 0; k < count; ++k) {
        const double plain = q.weight.value[k], m = dropped(q, k, 1);
        if (plain == 0 && q.weight.error[k] == 0) continue;
        // The query's error acts on the keys with signs of their own.
        const double grown = growth * growth_of(q.independent[k] + q.common[k]);
        const bool is_bounded = plain != 0 && std::isfinite(grown);
        const double own =
                         (is_bounded ? grown * plain * q.independent[k] : 0) + model_.least_power(),
                     common = is_bounded ? grown * plain * q.common[k] : q.weight.error[k];
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

void Candidate::set_softmax_errors(QueryRow& q, const RowsView& values,
                                   const std::vector<double>& weights, double scale) const {
    const std::size_t count = values.rows, d = values.columns;
    std::vector<double> squares(d, 0), roots(d, 0);
    const double of_sums = spread_of_sums(count),
                 of_values = std::max(of_sums, std::min(values.spread, spread_of(count)));
    const bool is_small = q.mean_error < 1, is_limited = has_limits(q);
    for (std::size_t k = 0; k < count; ++k) {
        if (q.weight.value[k] == 0 && q.weight.error[k] == 0) continue;
        const double w =
            scale *
            (is_small ? weights[k] : weights[k] + std::abs(dropped(q, k, 1)) * q.weight.error[k]);
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
    q.moves = softmax_moves(q, values, q.output.value.data(), scale);
    q.unmoved_error.resize(d);
    // The sum of the exponentials is rounded, for all of them.
    const double of_all = q.sink_error + model_.gamma(count + 3) + 2 * model_.unit();
    for (std::size_t i = 0; i < d; ++i) {
        const double root = std::sqrt(roots[i]) / scale,
                     size = std::sqrt(static_cast<double>(count)) * root;
        const double x = q.output.value[i], move = q.moves[i],
                     others = std::sqrt(squares[i]) / scale;
        const double error = is_limited ? move + others : std::hypot(move, others);
        const double rounding = of_all * (std::abs(x) + (is_small ? 0 : error)) +
                                model_.of_sum(count + 4, x, root, size);
        q.output.error[i] = model_.stored(x, error + rounding);
        q.unmoved_error[i] = model_.stored(x, others + rounding);
    }
}

/// How far the errors of the weights can move the sum of m w v: it stays between the values of the
/// keys that may have a weight.
std::vector<double> Candidate::largest_moves(const QueryRow& q, const RowsView& values,
                                             const double* center) const {
    const std::size_t count = values.rows, d = values.columns;
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
        const double w = q.weight.value[k], above = q.weight.error[k], below = q.weight.below_at(k);
        if (w == 0 && above == 0) continue;
        gained += above;
        lost += below;
        const double m = dropped(q, k, 1);
        const double* const value = values.at(k);
        for (std::size_t i = 0; i < d; ++i)
            moves[i].add(m * value[i] - center[i], above, below, w + above > none);
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
bool Candidate::moves_as_projected(const QueryRow& q) const {
    constexpr std::size_t work_limit = 1U << 28U;
    const std::size_t work = plan_.batch * plan_.heads * plan_.rows * plan_.kv_len * plan_.d_out;
    return !q.moves.empty() && has_limits(q) && !rounds(c_, Rounded::outputs) &&
           work <= work_limit && c_.merged != HeadSplit::reshaped;
}

/// The column of a head's column c where heads are joined.
std::size_t Candidate::joined_column(std::size_t head, std::size_t c) const {
    return c_.merged == HeadSplit::interleaved ? head + c * plan_.heads : head * plan_.d_v + c;
}

/// Adds to `moves`, for each row of the weight of the output projection, how far the errors of the
/// weights of a head move its result; and to the squares of `roots` the squares.
void Candidate::add_projected_moves(const QueryRow& q, const RowsView& weight,
                                    std::vector<double>& moves, std::vector<double>& roots) {
    projected_.resize(plan_.batch * plan_.heads);
    ProjectedHead& head = projected_[q.at.batch * plan_.heads + q.at.head];
    const auto project = [&](const double* x, double* y) {
        for (std::size_t o = 0; o < weight.rows; ++o)
            y[o] = inner_product(x, head.weight.at(o), head.weight.columns);
    };
    if (head.values.rows == 0) {
        const RowsView values =
            joined(Tensor::value, q.at.batch, kv_head_of(q.at.head, Tensor::value));
        head.weight = BoundedRows(weight.rows, values.columns);
        for (std::size_t o = 0; o < weight.rows; ++o)
            for (std::size_t c = 0; c < values.columns; ++c)
                head.weight.at(o)[c] = weight.at(o)[joined_column(q.at.head, c)];
        head.values = BoundedRows(values.rows, weight.rows);
        for (std::size_t k = 0; k < values.rows; ++k) project(values.at(k), head.values.at(k));
        double longest = 0;
        for (const double x : head.values.value)
            if (std::isfinite(x)) longest = std::max(longest, std::abs(x));
        head.scale = scale_for_squares(longest);
    }
    std::vector<double> center(weight.rows);
    project(q.output.value.data(), center.data());
    const std::vector<double> of_row =
        softmax_moves(q, head.values.view(), center.data(), head.scale);
    for (std::size_t o = 0; o < weight.rows; ++o) {
        moves[o] += of_row[o];
        roots[o] = std::hypot(roots[o], of_row[o]);
    }
}

void Candidate::fill_output(ArrayId, const RowIndex& at) {
    answer_ = answered(at).output;
}

/// If reshaped, (heads, rows, d) in memory in order.
RowIndex Candidate::joined_from(const RowIndex& moved, std::size_t h) const {
    RowIndex at = moved;
    const std::size_t heads = plan_.heads, rows = plan_.rows;
    switch (c_.output.order) {
        case OutputOrder::batch: at.batch = plan_.batch - 1 - at.batch; break;
        case OutputOrder::heads: h = heads - 1 - h; break;
        case OutputOrder::next_head: h = (h + 1) % heads; break;
        case OutputOrder::tokens: at.row = rows - 1 - at.row; break;
        case OutputOrder::next_token: at.row = (at.row + 1) % rows; break;
        case OutputOrder::previous_token: at.row = (at.row + rows - 1) % rows; break;
        case OutputOrder::reshaped:
            at.row += h * rows;
            h = at.row % heads;
            at.row /= heads;
            break;
        default: break;
    }
    const std::size_t row =
        c_.merged == HeadSplit::reshaped ? at.row * plan_.heads + h : h * plan_.rows + at.row;
    return {at.batch, row / plan_.rows, row % plan_.rows};
}

bool Candidate::projects_out() const {
    return problem_.projection[index_of(Tensor::out)] && c_.projects_out;
}

/// What is done to outputs after they are joined and projected.
void Candidate::fill_context(ArrayId array, const RowIndex& at) {
    fill_joined(array, at);
    const OutputConvention& output = c_.output;
    if (output == OutputConvention()) return;
    std::vector<double>&x = answer_.value, &error = answer_.error;
    const std::size_t count = x.size();
    if (output.order == OutputOrder::columns) {
        std::ranges::reverse(x);
        std::ranges::reverse(error);
    }
    const Numbers& source = problem_.source[0];
    const double* const residual =
        source.value.data() +
        (at.batch * plan_.q_len + plan_.first_query + at.row) * source.columns +
        (source.columns == count ? 0 : at.head * count);
    double sum = 0, errors = 0, squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
        x[i] = x[i] * output.factor + (output.adds_source ? residual[i] : 0);
        error[i] = error[i] * std::abs(output.factor) + 4 * model_.rounding(x[i]) +
                   (output.adds_source ? 4 * model_.rounding(residual[i]) : 0);
        sum += x[i];
        errors += error[i];
    }
    if (output.norm == OutputNorm::none) return;
    const auto n = static_cast<double>(count);
    const double mean = output.norm == OutputNorm::layer ? sum / n : 0;
    for (double& value : x) {
        value -= mean;
        squares += value * value;
    }
    constexpr double epsilon = 1e-5;
    const double size = std::sqrt(squares / n + epsilon);
    for (std::size_t i = 0; i < count; ++i) {
        x[i] /= size;
        error[i] = (error[i] + (1 + std::abs(x[i])) * errors / n) / size +
                   8 * model_.unit() * (std::abs(x[i]) + std::abs(mean) / size);
    }
}

void Candidate::fill_joined(ArrayId array, const RowIndex& at) {
    if (plan_.shown.separate_heads && !*plan_.config.out_proj)
        return fill_output(array, joined_from(at, at.head));
    const std::size_t heads = plan_.heads, d = plan_.d_v;
    constexpr auto out = index_of(Tensor::out);
    const std::optional<ProjectionNumbers>& p = problem_.projection[out];
    const bool projects = projects_out();
    const std::shared_ptr<const BoundedRows> made =
        projects ? shared_.weight(Tensor::out, c_) : nullptr;
    const RowsView weight = projects ? made->view() : RowsView();
    BoundedRows joined(1, heads * d);
    std::vector<double> moves(weight.rows, 0), roots = moves;
    double moved_root = 0;
    for (std::size_t i = 0; i < heads; ++i) {
        const QueryRow& q = answered(joined_from(at, i));
        const bool moves_together = with_errors_ && projects && moves_as_projected(q);
        const std::vector<double>& error = moves_together ? q.unmoved_error : q.output.error;
        for (std::size_t c = 0; c < d; ++c) {
            joined.value[joined_column(i, c)] = q.output.value[c];
            joined.error[joined_column(i, c)] = error[c];
        }
        if (!moves_together) continue;
        for (const double move : q.moves) moved_root = std::hypot(moved_root, move);
        add_projected_moves(q, weight, moves, roots);
    }
    if (!projects) return answer_row(joined.view());
    // The errors of a head's columns come from the same weights, but with signs of their own.
    joined.spread = spread_of_sums(joined.columns);
    if (with_errors_) joined.set_norms();
    const RowsView outputs = joined.view();
    reset(answer_, weight.rows);
    for (std::size_t o = 0; o < weight.rows; ++o) {
        double& y = answer_.value[o];
        y = inner_product(outputs.value, weight.at(o), joined.columns);
        const bool adds = c_.adds_bias[out] && !p->bias.empty();
        const double bias = adds ? p->bias[o] : 0;
        y += bias;
        if (!with_errors_) continue;
        const ProductError error = product_error(model_, y - bias, outputs, weight.part(o), 1);
        const double moved =
            std::min(moves[o], spread_of_sums(heads) * roots[o]) +
            moved_root * (weight.norms[o].error_two + 2 * model_.unit() * weight.norms[o].two);
        answer_.error[o] =
            model_.stored(y, error.independent + error.common + moved + model_.of_operand(bias) +
                                 model_.gamma(joined.columns + 1) * std::abs(bias));
    }
    round_rows(c_, Rounded::context, answer_);
}

}  // namespace attn
