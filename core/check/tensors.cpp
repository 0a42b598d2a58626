#include "core/check/tensors.hpp"

#include <numeric>

namespace attn {
namespace {

template <class... Parts>
Key key_of(Parts... parts) {
    return {static_cast<double>(parts)...};
}

void append(Key& key, const Key& more) {
    key.insert(key.end(), more.begin(), more.end());
}

/// The types that arrays from one to another are rounded to.
void add_types(Key& key, const Conventions& c, Rounded first, Rounded last) {
    for (const Conventions::Rounding& rounding : c.roundings)
        if (rounding.what >= first && rounding.what <= last)
            append(key, key_of(rounding.what, rounding.to));
}

void add_operand_types(Key& key, const Conventions& c) {
    add_types(key, c, Rounded::inputs, Rounded::parameters);
}

Key key_of_rotation(const RopeConvention& rope, Tensor tensor, std::size_t batch, int times) {
    if (!rope.pairs || times == 0) return {0};
    const bool is_query = tensor == Tensor::query;
    Key key = key_of(times, *rope.pairs, rope.base, rope.dims, rope.frequency_dims,
                     is_query ? rope.first_query : rope.first_key, rope.period, is_query,
                     rope.by_ids ? batch + 1 : 0);
    key.push_back(rope.scaling != nullptr ? 1 : 0);
    return key;
}

Key key_of_heads(Tensor slot, const Conventions& c) {
    const Tensor tensor = c.used[index_of(slot)];
    Key key = key_of(slot, tensor, c.split);
    const bool uses_all = c.split == HeadSplit::packed || c.split == HeadSplit::unpacked;
    for (const Tensor one : {Tensor::query, Tensor::key, Tensor::value}) {
        if (one != tensor && !uses_all) continue;
        const std::size_t by = index_of(c.projected_by[index_of(one)]);
        append(key, key_of(c.projected_from[index_of(one)], by, c.transposed[by], c.adds_bias[by]));
    }
    if (slot != Tensor::value) append(key, key_of(c.qk_norm));
    add_operand_types(key, c);
    return key;
}

void set_operand_errors(const ErrorModel& model, Numbers& x) {
    std::transform(x.value.begin(), x.value.end(), x.error.begin(),
                   [&](double value) { return model.of_operand(value); });
}

/// y = (x - mean) factor w + b of one row in place, with the errors of x and of the steps.
void normalise_with_error(const ErrorModel& model, const InputNorm& norm, double* x, double* error,
                          std::size_t count) {
    const double n = static_cast<double>(count);
    const double mean = norm.is_rms ? 0 : std::accumulate(x, x + count, 0.0) / n;
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double factor = 1 / std::sqrt(squares / n + norm.eps);
    const Norms norms = norms_of(x, error, count);
    const double shift_error = norm.is_rms ? 0
                                           : norms.error_two / std::sqrt(n) +
                                                 model.gamma(count) * norms.two / std::sqrt(n);
    const double size = std::sqrt(squares + n * norm.eps);
    const double factor_error =
        model.gamma(count + 4) +
        (norms.error_two + shift_error * std::sqrt(n)) / std::max(size, 0x1p-1022);
    for (std::size_t i = 0; i < count; ++i) {
        const double scaled = (x[i] - mean) * factor;
        const double y = scaled * norm.weight[i] + (norm.bias.empty() ? 0.0 : norm.bias[i]);
        error[i] = model.stored(
            y, std::abs(norm.weight[i]) * ((error[i] + shift_error) * factor +
                                           std::abs(scaled) * (factor_error + 4 * model.unit())) +
                   2 * model.rounding(y));
        x[i] = y;
    }
}

/// x / sqrt(sum of squares + 1e-6), as Gated DeltaNet.
void normalise_length_with_error(const ErrorModel& model, double* x, double* error,
                                 std::size_t count, bool is_recurrent) {
    constexpr double eps = 1e-6, least = 1e-12;
    const double squares = inner_product(x, x, count);
    const double factor =
        1 / (is_recurrent ? std::sqrt(squares + eps) : std::max(std::sqrt(squares), least));
    const double factor_error =
        model.gamma(count + 4) + norms_of(x, error, count).error_two * factor;
    for (std::size_t i = 0; i < count; ++i) {
        x[i] *= factor;
        error[i] = model.stored(x[i], error[i] * factor + std::abs(x[i]) * factor_error);
    }
}

/// The norms of x times a factor, in sums that compilers compute as vectors.
void scaled_norms(const double* x, std::size_t count, double factor, double& two, double& four) {
    constexpr std::size_t lanes = 4;
    double squares[lanes] = {}, fourths[lanes] = {};
    for (std::size_t i = 0; i < count; i += lanes)
        for (std::size_t lane = 0; lane < std::min(lanes, count - i); ++lane) {
            const double scaled = x[i + lane] * factor, square = scaled * scaled;
            squares[lane] += square;
            fourths[lane] += square * square;
        }
    two = std::sqrt((squares[0] + squares[1]) + (squares[2] + squares[3]));
    four = std::sqrt(std::sqrt((fourths[0] + fourths[1]) + (fourths[2] + fourths[3])));
}

void set_vector_norms(const double* x, std::size_t count, double& two, double& four) {
    scaled_norms(x, count, 1, two, four);
    if (four > 0x1p-240 && std::isfinite(four)) return;
    // Fourth powers leave the range.
    double most = 0;
    for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::abs(x[i]));
    if (most == 0 || !std::isfinite(most)) {
        two = four = most;
        return;
    }
    const double scale = std::exp2(std::clamp<double>(std::ilogb(most), -1000, 1000));
    scaled_norms(x, count, 1 / scale, two, four);
    two *= scale;
    four *= scale;
}

}  // namespace

double inner_product(const double* a, const double* b, std::size_t count) {
    constexpr std::size_t lanes = 8;
    double sums[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    double rest = 0;
    for (; i < count; ++i) rest += a[i] * b[i];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest;
}

Norms norms_of(const double* value, const double* error, std::size_t count) {
    Norms norms;
    set_vector_norms(value, count, norms.two, norms.four);
    if (error != nullptr) set_vector_norms(error, count, norms.error_two, norms.error_four);
    return norms;
}

void BoundedRows::set_norms() {
    norms.resize(rows);
    for (std::size_t row = 0; row < rows; ++row)
        norms[row] = norms_of(at(row), error_at(row), columns);
}

ProductError product_error(const ErrorModel& model, double product, const RowsView& a,
                           const RowsView& b, std::size_t scaled) {
    const std::size_t count = a.columns;
    const auto spread_over = [&](double spread) {
        return std::min(spread, std::sqrt(static_cast<double>(count)));
    };
    // Roots of the sums of the squares of products.
    double of_values = a.norms->four * b.norms->four, of_b = a.norms->four * b.norms->error_four,
           of_a = a.norms->error_four * b.norms->four;
    if (model.is_coarse()) {
        double values = 0, b_errors = 0, a_errors = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const double x = a.value[i] * a.value[i], y = b.value[i] * b.value[i];
            values += x * y;
            b_errors += x * b.error[i] * b.error[i];
            a_errors += a.error[i] * a.error[i] * y;
        }
        if (std::isfinite(values + b_errors + a_errors)) {
            of_values = std::sqrt(values);
            of_b = std::sqrt(b_errors);
            of_a = std::sqrt(a_errors);
        }
    }
    const double foldings = model.is_coarse() ? std::sqrt(static_cast<double>(scaled)) : 2;
    const double sums = model.of_sum(count + 2, product, of_values, a.norms->two * b.norms->two) +
                        foldings * model.unit() * spread_of_sums(count) * of_values;
    double independent = sums, common = 0;
    if (b.norms->error_two != 0)
        independent += spread_over(b.spread) * of_b + a.norms->error_two * b.norms->error_two;
    if (a.norms->error_two != 0) common = spread_over(a.spread) * of_a;
    return {independent, common};
}

bool rounds(const Conventions& c, Rounded what) {
    return std::any_of(c.roundings.begin(), c.roundings.end(),
                       [&](const Conventions::Rounding& r) { return r.what == what; });
}

void round_rows(const Conventions& c, Rounded what, double* value, double* error,
                std::size_t count) {
    for (const Conventions::Rounding& rounding : c.roundings) {
        if (rounding.what != what) continue;
        for (std::size_t i = 0; i < count; ++i) {
            const Bounded rounded = round_within(row_of(rounding.to), {value[i], error[i]});
            value[i] = rounded.value;
            error[i] = rounded.error;
        }
    }
}

Key Evaluator::key_of_joined(Tensor slot, std::size_t batch, std::size_t kv_head,
                             const Conventions& c) {
    Key key = key_of_heads(slot, c);
    append(key, key_of(batch, kv_head));
    append(key, key_of_rotation(c.rope, slot, batch,
                                slot == Tensor::key ? c.rope.key_times : c.rope.value_times));
    add_types(key, c, Rounded::unrotated, Rounded::output_factors);
    return key;
}

Evaluator::Evaluator(const Problem& problem, NumberType arithmetic)
    : problem_(problem), arithmetic_(arithmetic),
      model_(arithmetic, problem.plan.config.sum_type()) {
    const NumberTypeRow& type = row_of(arithmetic);
    if (!model_.is_coarse()) return;  // asked for the noise of the smaller types alone
    for (const OperandRow& row : operand_rows)
        if (row.kind == OperandKind::cache || row.kind == OperandKind::result)
            holds_operands_ = holds_operands_ && holds_all(type, problem.numbers(row));
    for (const Numbers& source : problem.source)
        holds_operands_ = holds_operands_ && holds_all(type, source.value);
    for (const std::optional<ProjectionNumbers>& p : problem.projection)
        holds_operands_ =
            holds_operands_ && (!p || (holds_all(type, p->weight) && holds_all(type, p->bias)));
}

std::shared_ptr<const BoundedRows> Evaluator::weight(Tensor tensor, const Conventions& c) const {
    const bool is_transposed = c.transposed[index_of(tensor)];
    Key key = key_of(tensor, is_transposed);
    add_operand_types(key, c);
    return weights_.of(key, [&] {
        const ProjectionNumbers& p = *problem_.projection[index_of(tensor)];
        BoundedRows rows(p.d_out, p.d_in);
        rows.value = p.weight;
        if (is_transposed) {
            // What is stored as a matrix of one shape is read as one of the other shape.
            const std::size_t d_out = p.d_out / p.groups, d_in = p.d_in;
            for (std::size_t g = 0; g < p.groups; ++g)
                for (std::size_t o = 0; o < d_out; ++o)
                    for (std::size_t i = 0; i < d_in; ++i) {
                        const std::size_t index = p.in_out ? o * d_in + i : i * d_out + o;
                        const std::size_t from_o = p.in_out ? index % d_out : index / d_in;
                        const std::size_t from_i = p.in_out ? index / d_out : index % d_in;
                        rows.value[(g * d_out + o) * d_in + i] =
                            p.weight[(g * d_out + from_o) * d_in + from_i];
                    }
        }
        round_rows(c, Rounded::parameters, rows);
        set_operand_errors(model_, rows);
        rows.spread = spread_of(p.d_in);
        rows.set_norms();
        return rows;
    });
}

std::shared_ptr<const BoundedRows> Evaluator::normed_inputs() const {
    return normed_.of({}, [&] {
        BoundedRows x(problem_.inputs.rows, problem_.inputs.columns);
        x.value = problem_.inputs.value;
        set_operand_errors(model_, x);
        for (std::size_t row = 0; row < x.rows; ++row)
            normalise_with_error(model_, *problem_.input_norm, x.at(row), x.error_at(row),
                                 x.columns);
        return x;
    });
}

BoundedRows Evaluator::source(Tensor tensor, const Conventions& c) const {
    const Numbers& from = problem_.source[index_of(tensor)];
    const std::size_t columns = from.columns;
    BoundedRows x(from.rows, columns);
    x.value = from.value;
    if (!problem_.projection[index_of(tensor)] && c.transposed[index_of(tensor)]) {
        const std::size_t len = problem_.tokens(tensor),
                          parts =
                              problem_.heads_in == HeadsIn::axis ? problem_.head_count(tensor) : 1,
                          d = columns / parts;
        for (std::size_t b = 0; b < problem_.plan.batch; ++b)
            for (std::size_t t = 0; t < len; ++t)
                for (std::size_t h = 0; h < parts; ++h)
                    for (std::size_t i = 0; i < d; ++i) {
                        const std::size_t index = i * len + t;
                        x.value[(b * len + t) * columns + h * d + i] =
                            from.value[(b * len + index / d) * columns + h * d + index % d];
                    }
    }
    round_rows(c, Rounded::inputs, x);
    const bool is_normed = problem_.input_norm &&
                           (tensor == Tensor::query || !row_of(problem_.plan.config.mode).context);
    if (is_normed && !rounds(c, Rounded::inputs))
        x.error = normed_inputs()->error;
    else
        set_operand_errors(model_, x);
    x.spread = spread_of(columns);
    x.set_norms();
    return x;
}

std::shared_ptr<const BoundedRows> Evaluator::projected(Tensor tensor, const Conventions& c) const {
    const Tensor from = c.projected_from[index_of(tensor)], by = c.projected_by[index_of(tensor)];
    Key key = key_of(from, by, c.transposed[index_of(by)]);
    add_operand_types(key, c);
    return projected_.of(key, [&] {
        BoundedRows x = source(from, c);
        if (!problem_.projection[index_of(by)]) return x;
        const std::shared_ptr<const BoundedRows> w = weight(by, c);
        const RowsView inputs = x.view(), weights = w->view();
        BoundedRows product(x.rows, w->rows);  // x W^T
        for (std::size_t row = 0; row < x.rows; ++row)
            for (std::size_t o = 0; o < w->rows; ++o) {
                double& to = product.at(row)[o];
                to = inner_product(inputs.at(row), weights.at(o), x.columns);
                const ProductError error =
                    product_error(model_, to, inputs.part(row), weights.part(o), 1);
                product.error_at(row)[o] = model_.stored(to, error.independent + error.common);
            }
        product.spread = spread_of_sums(x.columns);
        return product;
    });
}

std::shared_ptr<const BoundedRows> Evaluator::heads(Tensor slot, const Conventions& c) const {
    return heads_.of(key_of_heads(slot, c), [&] {
        BoundedRows x = split(slot, c);
        const std::size_t count = problem_.head_count(slot), len = problem_.tokens(slot);
        const std::optional<InputNorm>& norm =
            slot == Tensor::query ? problem_.query_norm : problem_.key_norm;
        if (norm && slot != Tensor::value) {
            const std::size_t d = x.columns, together = norm->weight.size() / d;
            std::vector<double> row(norm->weight.size()), error(row.size());
            for (std::size_t b = 0; b < problem_.plan.batch; ++b)
                for (std::size_t t = 0; t < len; ++t)
                    for (std::size_t first = 0; first < count; first += together) {
                        const auto each = [&](const auto& copy) {
                            for (std::size_t i = 0; i < together; ++i) {
                                const std::size_t at = (b * count + first + i) * len + t;
                                copy(x.at(at), row.data() + i * d);
                                copy(x.error_at(at), error.data() + i * d);
                            }
                        };
                        each([&](const double* from, double* to) { std::copy_n(from, d, to); });
                        normalise_with_error(model_, *norm, row.data(), error.data(), row.size());
                        each([&](double* to, const double* from) { std::copy_n(from, d, to); });
                    }
        }
        // The error of a row's factor is common to its numbers.
        if (slot != Tensor::value && (norm || c.qk_norm))
            x.spread = std::sqrt(static_cast<double>(x.columns));
        if (c.qk_norm && slot != Tensor::value)
            for (std::size_t row = 0; row < x.rows; ++row)
                normalise_length_with_error(model_, x.at(row), x.error_at(row), x.columns,
                                            problem_.plan.config.rule.has_value());
        x.set_norms();
        return x;
    });
}

std::shared_ptr<const RowRotation> Evaluator::rotation(const RopeConvention& rope, Tensor tensor,
                                                       std::size_t batch, int times) const {
    const std::size_t tokens = problem_.tokens(tensor), axes = problem_.plan.position_axes();
    Key key = key_of(tokens);
    append(key, key_of_rotation(rope, tensor, batch, times));
    return rotations_.of(key, [&] {
        std::vector<double> positions;
        for (std::size_t t = 0; t < tokens; ++t)
            for (std::size_t axis = 0; axis < axes; ++axis)
                positions.push_back(problem_.position(rope, tensor, batch, t, axis));
        return RowRotation(model_, rope, positions, axes, times);
    });
}

}  // namespace attn
