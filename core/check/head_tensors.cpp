#include "core/check/head_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/check/search.hpp"

namespace attn::check_detail {
namespace {

/// The types that operands are rounded to.
void add_operand_types(Key& key, const Conventions& c) {
    for (const Conventions::Rounding& rounding : c.roundings)
        if (rounding.what <= Rounded::parameters) {
            key.push_back(static_cast<double>(rounding.what));
            key.push_back(static_cast<double>(rounding.to));
        }
}

/// That each kind of tensor may take besides those in use.
constexpr std::size_t byte_limit = std::size_t{64} << 20;

/// out = x W^T, with the errors of the products.
void multiply_rows(const ErrorModel& model, const Rows& x, const Rows& weight, Rows& out) {
    for (std::size_t row = 0; row < x.rows; ++row) {
        double* const to = out.at(row);
        for (std::size_t o = 0; o < weight.rows; ++o)
            to[o] = inner_product(x.at(row), weight.at(o), x.columns);
        for (std::size_t o = 0; o < weight.rows; ++o) {
            const ProductError error =
                product_error(model, to[o], x.factor(row), weight.factor(o), x.columns, 1);
            out.error_at(row)[o] = model.stored(to[o], error.independent + error.common);
        }
    }
}

/// y = (x - mean) factor w + b of one row in place, with the errors of x and of the steps.
void normalise_with_error(const ErrorModel& model, const InputNorm& norm, double* x, double* error,
                          std::size_t count) {
    const double n = static_cast<double>(count);
    const double mean = norm.is_rms ? 0 : std::accumulate(x, x + count, 0.0) / n;
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double factor = 1 / std::sqrt(squares / n + norm.eps);
    double shift_error = 0, factor_error = 0;
    if (error != nullptr) {
        const Norms norms = norms_of(x, error, count);
        if (!norm.is_rms)
            shift_error =
                norms.error_two / std::sqrt(n) + model.gamma(count) * norms.two / std::sqrt(n);
        const double size = std::sqrt(squares + n * norm.eps);
        factor_error = model.gamma(count + 4) +
                       (norms.error_two + shift_error * std::sqrt(n)) / std::max(size, 0x1p-1022);
    }
    for (std::size_t i = 0; i < count; ++i) {
        const double scaled = (x[i] - mean) * factor;
        const double y = scaled * norm.weight[i] + (norm.bias.empty() ? 0.0 : norm.bias[i]);
        if (error != nullptr)
            error[i] =
                model.stored(y, std::abs(norm.weight[i]) *
                                        ((error[i] + shift_error) * factor +
                                         std::abs(scaled) * (factor_error + 4 * model.unit())) +
                                    2 * model.rounding(y));
        x[i] = y;
    }
}

/// x / sqrt(sum of squares + 1e-6), as Gated DeltaNet.
void normalise_length_with_error(const ErrorModel& model, double* x, double* error,
                                 std::size_t count) {
    constexpr double eps = 1e-6;
    const double squares = inner_product(x, x, count), factor = 1 / std::sqrt(squares + eps);
    double factor_error = 0;
    if (error != nullptr)
        factor_error = model.gamma(count + 4) + norms_of(x, error, count).error_two * factor;
    for (std::size_t i = 0; i < count; ++i) {
        const double y = x[i] * factor;
        if (error != nullptr)
            error[i] = model.stored(y, error[i] * factor + std::abs(y) * factor_error);
        x[i] = y;
    }
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

namespace {

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

Norms norms_of(const double* value, const double* error, std::size_t count) {
    Norms norms;
    set_vector_norms(value, count, norms.two, norms.four);
    if (error != nullptr) set_vector_norms(error, count, norms.error_two, norms.error_four);
    return norms;
}

Rows::Rows(std::size_t row_count, std::size_t column_count, bool with_errors) {
    rows = row_count;
    columns = column_count;
    value.resize(rows * columns);
    if (with_errors) error.resize(rows * columns);
}

void Rows::set_norms() {
    if (!has_errors()) return;
    norms.resize(rows);
    for (std::size_t row = 0; row < rows; ++row)
        norms[row] = norms_of(at(row), error_at(row), columns);
}

ProductError product_error(const ErrorModel& model, double product, const Factor& a,
                           const Factor& b, std::size_t count, std::size_t scaled) {
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
        const PrecisionRow& to = row_of(rounding.to);
        for (std::size_t i = 0; i < count; ++i) {
            const RoundedNumber rounded =
                round_within(to, value[i], error == nullptr ? 0 : error[i]);
            value[i] = rounded.value;
            if (error != nullptr) error[i] = rounded.error;
        }
    }
}

Shared::Shared(const Problem& problem, Precision arithmetic)
    : problem_(problem), arithmetic_(arithmetic), model_(arithmetic), weights_(byte_limit),
      normed_(byte_limit), projected_(byte_limit), joined_(byte_limit), heads_(byte_limit),
      rotations_(byte_limit) {}

std::size_t Shared::head_count(Tensor tensor) const {
    return tensor == Tensor::query ? problem_.plan.heads : problem_.plan.kv_heads;
}

std::size_t Shared::head_width(Tensor tensor) const {
    return tensor == Tensor::value ? problem_.plan.d_v : problem_.plan.d_k;
}

std::size_t Shared::tokens(Tensor tensor) const {
    return problem_.source[index_of(tensor)].rows / std::max<std::size_t>(problem_.plan.batch, 1);
}

std::shared_ptr<const Rows> Shared::weight(Tensor tensor, const Conventions& c) {
    const bool is_transposed = c.transposed[index_of(tensor)];
    Key key{static_cast<double>(tensor), is_transposed ? 1.0 : 0.0};
    add_operand_types(key, c);
    return weights_.of(key, [&] {
        const ProjectionNumbers& p = *problem_.projection[index_of(tensor)];
        Rows rows(p.d_out, p.d_in, true);
        rows.value = p.weight;
        if (is_transposed) {
            // What is stored as a matrix of one shape is read as one of the other shape.
            const std::size_t d_out = p.d_out / p.groups, d_in = p.d_in;
            for (std::size_t g = 0; g < p.groups; ++g)
                for (std::size_t o = 0; o < d_out; ++o)
                    for (std::size_t i = 0; i < d_in; ++i) {
                        const std::size_t place = p.in_out ? o * d_in + i : i * d_out + o;
                        const std::size_t from_o = p.in_out ? place % d_out : place / d_in;
                        const std::size_t from_i = p.in_out ? place / d_out : place % d_in;
                        rows.value[(g * d_out + o) * d_in + i] =
                            p.weight[(g * d_out + from_o) * d_in + from_i];
                    }
        }
        round_rows(c, Rounded::parameters, rows.value.data(), nullptr, rows.value.size());
        for (std::size_t i = 0; i < rows.error.size(); ++i)
            rows.error[i] = model_.of_operand(rows.value[i]);
        rows.spread = spread_of(p.d_in);
        rows.set_norms();
        return rows;
    });
}

std::shared_ptr<const Rows> Shared::normed_inputs() {
    return normed_.of({}, [&] {
        Rows x(problem_.inputs.rows, problem_.inputs.columns, true);
        x.value = problem_.inputs.value;
        for (std::size_t i = 0; i < x.error.size(); ++i) x.error[i] = model_.of_operand(x.value[i]);
        for (std::size_t row = 0; row < x.rows; ++row)
            normalise_with_error(model_, *problem_.input_norm, x.at(row), x.error_at(row),
                                 x.columns);
        return x;
    });
}

Rows Shared::source(Tensor tensor, const Conventions& c) {
    const Numbers& from = problem_.source[index_of(tensor)];
    Rows x(from.rows, from.columns, true);
    x.value = from.value;
    const std::size_t columns = from.columns;
    const bool is_operand = !problem_.projection[index_of(tensor)].has_value();
    if (is_operand && c.transposed[index_of(tensor)]) {
        const std::size_t len = tokens(tensor),
                          parts = problem_.heads_in == HeadsIn::axis ? head_count(tensor) : 1,
                          d = columns / parts;
        for (std::size_t b = 0; b < problem_.plan.batch; ++b)
            for (std::size_t t = 0; t < len; ++t)
                for (std::size_t h = 0; h < parts; ++h)
                    for (std::size_t i = 0; i < d; ++i) {
                        const std::size_t place = i * len + t;
                        x.value[(b * len + t) * columns + h * d + i] =
                            from.value[(b * len + place / d) * columns + h * d + place % d];
                    }
    }
    round_rows(c, Rounded::inputs, x.value.data(), nullptr, x.value.size());
    const bool is_normed =
        problem_.input_norm && (tensor == Tensor::query || !row_of(problem_.plan.mode).context);
    if (is_normed && !rounds(c, Rounded::inputs))
        x.error = normed_inputs()->error;
    else
        for (std::size_t i = 0; i < x.error.size(); ++i) x.error[i] = model_.of_operand(x.value[i]);
    x.spread = spread_of(columns);
    x.set_norms();
    return x;
}

std::shared_ptr<const Rows> Shared::projected(Tensor tensor, const Conventions& c) {
    const Tensor from = c.projected_from[index_of(tensor)], by = c.projected_by[index_of(tensor)];
    Key key{static_cast<double>(from), static_cast<double>(by),
            c.transposed[index_of(by)] ? 1.0 : 0.0};
    add_operand_types(key, c);
    return projected_.of(key, [&] {
        Rows x = source(from, c);
        if (!problem_.projection[index_of(by)]) return x;
        const std::shared_ptr<const Rows> w = weight(by, c);
        Rows product(x.rows, w->rows, true);
        multiply_rows(model_, x, *w, product);
        product.spread = spread_of_sums(x.columns);
        return product;
    });
}

Key Shared::key_of_heads(Tensor slot, const Conventions& c) {
    const Tensor tensor = c.used[index_of(slot)];
    Key key{static_cast<double>(slot), static_cast<double>(tensor), static_cast<double>(c.split)};
    const bool uses_all = c.split == HeadSplit::packed || c.split == HeadSplit::unpacked;
    for (Tensor one : {Tensor::query, Tensor::key, Tensor::value}) {
        if (one != tensor && !uses_all) continue;
        const std::size_t by = by_of(one, c);
        key.push_back(static_cast<double>(c.projected_from[index_of(one)]));
        key.push_back(static_cast<double>(by));
        key.push_back(c.transposed[by] ? 1 : 0);
        key.push_back(c.adds_bias[by] ? 1 : 0);
    }
    add_operand_types(key, c);
    return key;
}

std::shared_ptr<const Heads> Shared::heads(Tensor slot, const Conventions& c) {
    const Key key = key_of_heads(slot, c);
    return heads_.of(key, [&] {
        Heads x = split(slot, c);
        const std::optional<InputNorm>& norm =
            slot == Tensor::query ? problem_.query_norm : problem_.key_norm;
        if (norm && slot != Tensor::value) {
            const std::size_t d = x.columns, together = norm->weight.size() / d;
            std::vector<double> row(norm->weight.size()), error(row.size());
            for (std::size_t b = 0; b < problem_.plan.batch; ++b)
                for (std::size_t t = 0; t < x.tokens; ++t)
                    for (std::size_t first = 0; first < x.heads; first += together) {
                        const auto each = [&](const auto& copy) {
                            for (std::size_t i = 0; i < together; ++i) {
                                const std::size_t at = (b * x.heads + first + i) * x.tokens + t;
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
        if (slot != Tensor::value && (norm || problem_.plan.qk_norm))
            x.spread = std::sqrt(static_cast<double>(x.columns));
        if (problem_.plan.qk_norm && slot != Tensor::value)
            for (std::size_t row = 0; row < x.rows; ++row)
                normalise_length_with_error(model_, x.at(row), x.error_at(row), x.columns);
        x.set_norms();
        return x;
    });
}

}  // namespace attn::check_detail

namespace attn {

/// How many weights, projections and heads a search makes hardly depends on the question; those
/// that threads use are kept beyond the limits.
double bytes_of_search(const Plan& plan, std::size_t types, std::size_t threads) {
    const auto product = [](auto... sizes) { return (static_cast<double>(sizes) * ...); };
    constexpr double bytes = 2 * sizeof(double), tensors = 3;  // values and errors; q, k and v
    const double columns =
                     product(plan.heads, plan.d_k) + product(plan.kv_heads, plan.d_k + plan.d_v),
                 weight = bytes * product(plan.d_in) * columns / tensors,
                 tensor = bytes *
                          (product(plan.batch, plan.heads, plan.q_len, plan.d_k) +
                           product(plan.batch, plan.kv_heads, plan.kv_len, plan.d_k + plan.d_v)) /
                          tensors;
    const auto kept = [](double made, double size) {
        return std::min(made * size, static_cast<double>(check_detail::byte_limit) + size);
    };
    const double memos = kept(32, weight) + kept(30, tensor) + kept(60, tensor) + kept(125, tensor);
    return product(types) * (memos + 2 * tensors * product(threads) * tensor);
}

}  // namespace attn
