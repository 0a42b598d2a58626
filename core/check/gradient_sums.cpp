// Gradients that sum over queries: of keys, values, parameters and inputs of projections.
#include "core/check/gradients.hpp"

namespace attn {
namespace {

/// Gradients of a normalised row, or without a norm of a row divided by its length, become those of
/// the row x; `error` may be null.
void norm_back(const LaneModel& model, const InputNorm* norm, bool is_recurrent, const double* x,
               const double* error, double unit, std::vector<Lane>& g) {
    const std::size_t count = g.size();
    const double squares = inner_product(x, x, count);
    const RowScale scale = norm != nullptr
                               ? scale_of_row(std::span(x, count), norm->is_rms, norm->eps)
                               : RowScale{0, unit_factor(squares, is_recurrent)};
    // A row that is divided by the least length is multiplied by a constant.
    const bool is_divided = norm != nullptr || is_recurrent || std::sqrt(squares) > least_length;
    const double divisor = !is_divided       ? HUGE_VAL
                           : norm != nullptr ? static_cast<double>(count)
                                             : 1;
    Lane sum, along;
    std::vector<Lane> normed(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double value = (x[i] - scale.mean) * scale.factor,
                     off = error == nullptr ? 0 : error[i] * scale.factor;
        normed[i] = {value, square(off) + square(4 * unit * value), square(unit * value)};
        if (norm != nullptr) g[i] = model.stored(g[i] * model.operand(norm->weight[i]));
        if (norm != nullptr && !norm->is_rms) sum = sum + g[i];
        along = along + g[i] * normed[i];
    }
    along = model.finished(along, count);
    for (std::size_t i = 0; i < count; ++i) {
        const Lane moved = (sum + normed[i] * along).times(-1 / divisor);
        const Lane off{
            1, normed[i].squares / std::max(square(normed[i].value), 1.0) + square(8 * unit),
            square(unit)};
        g[i] = model.stored((model.stored(g[i]) + model.stored(moved)).times(scale.factor) * off);
    }
}

}  // namespace

void Candidate::scale_lanes(Lanes& x, double factor) {
    if (factor == 1) return;
    for (std::size_t i = 0; i < x.value.size(); ++i)
        x.set(i / x.columns, i % x.columns, x.at(i / x.columns, i % x.columns).times(factor));
}

void Candidate::round_lanes(Rounded what, std::vector<Lane>& x) const {
    if (!rounds(c_, what)) return;
    for (Lane& one : x) {
        double error = 0;
        round_rows(c_, what, &one.value, &error, 1);
    }
}

/// Of forward arrays; the bound where it is not known.
std::vector<double> Candidate::variance_of(ArrayId array, const RowIndex& at, const Numbers& x) {
    std::vector<double> variance;
    for (const double error : x.error) variance.push_back(square(error));
    if (!with_errors_ || !has_noise(shared_, c_, array)) return variance;
    const Noise& known = noise(array, at, last_detail(array));
    for (std::size_t i = 0; i < known.column.size(); ++i)
        if (known.variance[i] != HUGE_VAL) variance[known.column[i]] = known.variance[i];
    return variance;
}

Lanes Candidate::context_lanes(std::size_t batch) {
    const std::size_t heads = plan_.shown.separate_heads ? plan_.heads : 1;
    Lanes made(heads * plan_.rows, plan_.d_out, with_errors_);
    for (std::size_t i = 0; i < made.rows; ++i) {
        const RowIndex at{batch, i / plan_.rows, i % plan_.rows};
        fill_context("context_vectors", at);
        const Numbers y = answer_;
        const std::vector<double> variance = variance_of("context_vectors", at, y);
        for (std::size_t c = 0; c < made.columns; ++c)
            made.set(i, c, {y.value[c], square(y.error[c]), variance[c]});
    }
    return made;
}

Lane Candidate::loss() {
    Lane sum;
    double squares = 0, count = 0;
    const bool is_mse = c_.backward.loss == Loss::mse;
    const std::span<const double> target = problem_.numbers("target");
    for (std::size_t b = 0; b < plan_.batch; ++b) {
        const Lanes y = context_lanes(b);
        for (std::size_t i = 0; i < y.value.size(); ++i, ++count) {
            Lane x = y.at(i / y.columns, i % y.columns);
            if (is_mse) {
                x = lane_model_.stored(
                    x + lane_model_.operand(target[b * y.value.size() + i]).times(-1));
                const double slope = 4 * square(x.value);
                x = lane_model_.stored(
                    {square(x.value), slope * x.squares + square(x.squares), slope * x.variance});
            }
            sum = sum + x;
            squares += square(x.value);
        }
    }
    sum.squares += lane_model_.of_products(static_cast<std::size_t>(count)) * squares;
    sum = lane_model_.finished(sum, static_cast<std::size_t>(count));
    return c_.backward.loss == Loss::sum ? sum : lane_model_.stored(sum.times(1 / count));
}

const Lanes& Candidate::context_gradients(std::size_t batch) {
    return sums(Sums::contexts, batch, [&] {
        const std::size_t heads = plan_.shown.separate_heads ? plan_.heads : 1;
        Lanes made(heads * plan_.rows, plan_.d_out, with_errors_);
        const std::size_t size = made.value.size();
        const std::span<const double> given = problem_.numbers("grad_output"),
                                      target = problem_.numbers("target");
        const std::optional<Loss> loss = c_.backward.loss;
        const double factor =
            c_.backward.factor /
            (!loss || *loss == Loss::sum ? 1 : static_cast<double>(plan_.batch * size));
        if (loss == Loss::mse) made = context_lanes(batch);
        for (std::size_t i = 0; i < size; ++i) {
            Lane x{1};
            if (!loss) x = lane_model_.operand(rounded_operand(given[batch * size + i]));
            if (loss == Loss::mse)
                x = lane_model_.stored(
                    made.at(i / made.columns, i % made.columns) +
                    lane_model_.operand(rounded_operand(target[batch * size + i])).times(-1));
            x = x.times(loss == Loss::mse ? 2 * factor : factor);
            if (loss == Loss::mean || loss == Loss::mse || factor != 1) x = lane_model_.stored(x);
            made.set(i / made.columns, i % made.columns, x);
        }
        return SumsOfArrays{std::move(made)};
    })[0];
}

double Candidate::rounded_operand(double x) const {
    double error = 0;
    round_rows(c_, Rounded::inputs, &x, &error, 1);
    return x;
}

const Lanes& Candidate::output_gradients(std::size_t batch) {
    return sums(Sums::outputs, batch, [&] {
        const Lanes& by_context = context_gradients(batch);
        Lanes made(plan_.heads * plan_.rows, plan_.d_v, with_errors_);
        Lanes columns;
        if (projects_out())
            columns = lane_model_.product(
                by_context, lanes_of(shared_.weight(Tensor::out, c_)->view(), nullptr));
        const bool is_apart = plan_.shown.separate_heads && !projects_out();
        for (std::size_t i = 0; i < made.value.size(); ++i) {
            const std::size_t row = i / plan_.d_v, head = row / plan_.rows, c = i % plan_.d_v,
                              column = is_apart ? c : joined_column(head, c);
            const Lanes& from = projects_out() ? columns : by_context;
            Lane x = from.at(is_apart ? row : row % plan_.rows, column);
            double error = 0;
            round_rows(c_, Rounded::output_factors, &x.value, &error, 1);
            made.set(row, c, x);
        }
        return SumsOfArrays{std::move(made)};
    })[0];
}

const Candidate::SumsOfArrays& Candidate::pass(std::size_t batch, std::size_t head) {
    return sums(Sums::pass, batch * plan_.heads + head,
                [&] { return is_linear_ ? linear_pass(batch, head) : softmax_pass(batch, head); });
}

const Lanes& Candidate::joined_gradients(Tensor slot, std::size_t batch, std::size_t kv_head) {
    const bool is_key = slot == Tensor::key;
    const std::size_t index = batch * plan_.kv_heads + kv_head;
    return sums(is_key ? Sums::joined_keys : Sums::joined_values, index, [&] {
        std::vector<std::size_t> heads;
        for (std::size_t head = 0; head < plan_.heads; ++head)
            if (kv_head_of(head, slot) == kv_head) heads.push_back(head);
        const GroupSum of = c_.backward.groups;
        if (of == GroupSum::first && !heads.empty()) heads.resize(1);
        if (of == GroupSum::last && !heads.empty()) heads = {heads.back()};
        Lanes sum(plan_.kv_len, is_key ? plan_.d_k : plan_.d_v, with_errors_);
        for (const std::size_t head : heads) {
            const Lanes& one = pass(batch, head)[is_key ? 1 : 2];
            for (std::size_t row = 0; row < sum.rows; ++row)
                LaneModel::add({1}, one, row, 0, sum, row);
        }
        if (heads.size() > 1) lane_model_.finish(sum, heads.size());
        if (of == GroupSum::mean && !heads.empty())
            scale_lanes(sum, 1 / static_cast<double>(heads.size()));
        return SumsOfArrays{std::move(sum)};
    })[0];
}

/// The transpose of a rotation, unless the conventions have another.
void Candidate::turn_back(Tensor slot, std::size_t batch, std::size_t token, Lanes& x,
                          std::size_t row) {
    const RopeConvention& rope = c_.rope;
    const bool is_query = slot == Tensor::query, is_value = slot == Tensor::value;
    const int times = (is_query   ? rope.query_times
                       : is_value ? rope.value_times
                                  : rope.key_times) *
                      (is_query   ? c_.backward.query_turns
                       : is_value ? -1
                                  : c_.backward.key_turns);
    if (!rope.pairs || times == 0) return;
    const std::shared_ptr<const RowRotation> turn = shared_.rotation(rope, slot, batch, times);
    const bool is_half = turn->layout == Rope::half;
    const std::size_t step = is_half ? 1 : 2, apart = is_half ? turn->pairs : 1;
    for (std::size_t i = 0; i < turn->pairs; ++i) {
        const std::size_t at = token * turn->pairs + i, one = i * step, other = one + apart;
        const double unit = square(model_.unit());
        const Lane cos{turn->cosine[at], square(turn->error[at]), unit},
            sin{turn->sine[at], square(turn->error[at]), unit};
        const Lane a = x.at(row, one), b = x.at(row, other);
        x.set(row, one, lane_model_.finished(cos * a + (sin * b).times(-1), 2));
        x.set(row, other, lane_model_.finished(sin * a + cos * b, 2));
    }
}

const Lanes& Candidate::slot_gradients(Tensor slot) {
    return sums(Sums::slots, index_of(slot), [&] {
        const bool is_query = slot == Tensor::query;
        const std::size_t heads = problem_.head_count(slot), tokens = problem_.tokens(slot),
                          first = is_query ? plan_.first_query : 0,
                          cached = is_query ? 0 : plan_.kv_len - tokens,
                          count = is_query ? plan_.rows : tokens;
        Lanes made(plan_.batch * heads * tokens, slot == Tensor::value ? plan_.d_v : plan_.d_k,
                   with_errors_);
        for (std::size_t i = 0; i < plan_.batch * heads; ++i) {
            const std::size_t batch = i / heads, head = i % heads;
            const Lanes& from =
                is_query ? pass(batch, head)[0] : joined_gradients(slot, batch, head);
            for (std::size_t t = 0; t < count; ++t) {
                const std::size_t row = i * tokens + first + t;
                for (std::size_t c = 0; c < made.columns; ++c)
                    made.set(row, c, from.at(cached + t, c));
                turn_back(slot, batch, first + t, made, row);
            }
        }
        lengths_back(slot, made);
        return SumsOfArrays{std::move(made)};
    })[0];
}

/// Through the norms of heads.
void Candidate::lengths_back(Tensor slot, Lanes& x) {
    const std::optional<InputNorm>& norm =
        slot == Tensor::query ? problem_.query_norm : problem_.key_norm;
    if (slot == Tensor::value || (!norm && !c_.qk_norm)) return;
    const BoundedRows given = shared_.split(slot, c_);
    const std::size_t d = x.columns, together = norm ? norm->weight.size() / d : 1,
                      tokens = problem_.tokens(slot);
    // Heads that are normalised together are apart by all tokens.
    for (std::size_t row = 0; row < x.rows; ++row) {
        if (row / tokens % together != 0) continue;
        std::vector<double> from, error;
        std::vector<Lane> g;
        for (std::size_t i = 0; i < together * d; ++i) {
            const std::size_t at = row + i / d * tokens;
            from.push_back(given.value[at * d + i % d]);
            error.push_back(given.error[at * d + i % d]);
            g.push_back(x.at(at, i % d));
        }
        norm_back(lane_model_, norm ? &*norm : nullptr, is_linear_, from.data(), error.data(),
                  model_.unit(), g);
        for (std::size_t i = 0; i < together * d; ++i) x.set(row + i / d * tokens, i % d, g[i]);
    }
}

Lanes Candidate::side_by_side(Tensor slot) {
    const Lanes& heads = slot_gradients(slot);
    const std::size_t count = problem_.head_count(slot), tokens = problem_.tokens(slot),
                      d = heads.columns;
    Lanes made(plan_.batch * tokens, count * d, with_errors_);
    for (std::size_t i = 0; i < heads.rows; ++i)
        for (std::size_t c = 0; c < d; ++c)
            made.set(i / tokens / count * tokens + i % tokens, i / tokens % count * d + c,
                     heads.at(i, c));
    return made;
}

const Candidate::SumsOfArrays& Candidate::parameter_gradients(Tensor tensor) {
    return sums(Sums::parameters, index_of(tensor), [&] {
        const bool is_out = tensor == Tensor::out;
        Lanes by, x;
        if (is_out) {
            by = Lanes(plan_.batch * plan_.rows, plan_.d_out, with_errors_);
            x = Lanes(by.rows, plan_.heads * plan_.d_v, with_errors_);
            for (std::size_t i = 0; i < by.rows; ++i) {
                const Lanes& of_context = context_gradients(i / plan_.rows);
                for (std::size_t c = 0; c < by.columns; ++c)
                    by.set(i, c, of_context.at(i % plan_.rows, c));
                for (std::size_t head = 0; head < plan_.heads; ++head) {
                    const RowIndex at{i / plan_.rows, head, i % plan_.rows};
                    const Numbers o = answered(at).output;
                    const std::vector<double> variance = variance_of("head_outputs", at, o);
                    for (std::size_t c = 0; c < plan_.d_v; ++c)
                        x.set(i, joined_column(head, c),
                              {o.value[c], square(o.error[c]), variance[c]});
                }
            }
        } else {
            by = side_by_side(tensor);
            x = lanes_of(shared_.source(tensor, c_).view(), nullptr);
            for (std::size_t i = 0; problem_.input_norm && i < x.variance.size(); ++i)
                x.variance[i] = square_of_half(type_, x.value[i]) / 2;
        }
        SumsOfArrays made{lane_model_.transposed_product(by, x)};
        if (with_errors_ && model_.is_coarse()) {
            // Outputs have the errors of the values in common.
            Lanes deviation(x.rows, x.columns, false);
            for (std::size_t i = 0; i < x.variance.size(); ++i)
                deviation.value[i] = std::sqrt(x.variance[i]);
            const Lanes together = lane_model_.transposed_product(by, deviation);
            for (std::size_t i = 0; i < together.value.size(); ++i)
                made[0].variance[i] += square(together.value[i]);
        }
        Lanes ones(by.rows, 1, false);
        std::ranges::fill(ones.value, 1);
        Lanes bias = lane_model_.transposed_product(ones, by);
        if (c_.backward.averages_biases) scale_lanes(bias, 1 / static_cast<double>(by.rows));
        made.push_back(std::move(bias));
        return made;
    });
}

/// `tensor` is the first whose source it is.
const Lanes& Candidate::source_gradients(Tensor tensor) {
    return sums(Sums::sources, index_of(tensor), [&] {
        const bool has_context = row_of(plan_.config.mode).context,
                   has_values = !plan_.operands["value_input"].empty();
        const auto source_of = [&](Tensor of) {
            if (of == Tensor::value && has_values) return Tensor::value;
            return of == Tensor::query || !has_context ? Tensor::query : Tensor::key;
        };
        Lanes sum(problem_.source[index_of(tensor)].rows, problem_.source[index_of(tensor)].columns,
                  with_errors_);
        for (const Tensor of : {Tensor::query, Tensor::key, Tensor::value}) {
            if (source_of(of) != tensor) continue;
            const Lanes by = side_by_side(of);
            Lanes made(sum.rows, sum.columns, with_errors_);
            if (problem_.projection[index_of(of)]) {
                made = lane_model_.product(by, lanes_of(shared_.weight(of, c_)->view(), nullptr));
            } else {
                for (std::size_t i = 0; i < by.rows * by.columns; ++i) {
                    const std::size_t row = i / by.columns, c = i % by.columns % made.columns;
                    made.set(row, c, made.at(row, c) + by.at(row, i % by.columns));
                }
                lane_model_.finish(made, by.columns / std::max<std::size_t>(made.columns, 1));
            }
            for (std::size_t row = 0; row < sum.rows; ++row)
                LaneModel::add({1}, made, row, 0, sum, row);
            lane_model_.finish(sum, 2);
        }
        if (tensor == Tensor::query && problem_.input_norm)
            for (std::size_t row = 0; row < sum.rows; ++row) {
                const double* const x = problem_.inputs.value.data() + row * sum.columns;
                std::vector<Lane> g;
                for (std::size_t c = 0; c < sum.columns; ++c) g.push_back(sum.at(row, c));
                norm_back(lane_model_, &*problem_.input_norm, false, x, nullptr, model_.unit(), g);
                for (std::size_t c = 0; c < sum.columns; ++c) sum.set(row, c, g[c]);
            }
        return SumsOfArrays{std::move(sum)};
    })[0];
}

}  // namespace attn
