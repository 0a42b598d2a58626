#include "cli/repro/bound_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/operator/rope.hpp"

namespace attn::cli {
namespace {

double squared(double x) {
    return x * x;
}

/// Rows of numbers with their errors.
struct Bounded {
    std::vector<double> values;
    Errors errors;
};

/// A product x W^T + b: x is (batch * rows, columns) of tokens, the result (batch, rows, groups *
/// d_out).
Bounded multiply(const Bounded& x, const ProgramArray& w, bool in_out, const ProgramArray* bias,
                 const Roundoff& roundoff) {
    const std::size_t groups = w.full[0], in = w.full[in_out ? 1 : 2], out = w.full[in_out ? 2 : 1],
                      rows = x.values.size() / in;
    const double of_sum = roundoff.sum(in + 1);
    Bounded product;
    product.values.reserve(rows * groups * out);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t o = 0; o < groups * out; ++o) {
            const std::size_t group = o / out, column = o % out;
            double sum = bias != nullptr ? bias->values[o] : 0, magnitude = std::abs(sum), own = 0,
                   shared = 0;
            for (std::size_t i = 0; i < in; ++i) {
                const std::size_t at = row * in + i;
                const double factor =
                    w.values[group * in * out + (in_out ? i * out + column : column * in + i)];
                sum += x.values[at] * factor;
                magnitude += std::abs(x.values[at] * factor);
                own += squared(factor * x.errors.own[at]);
                shared += std::abs(factor) * x.errors.shared[at];
            }
            product.values.push_back(sum);
            product.errors.own.push_back(of_sum * magnitude);
            product.errors.shared.push_back(std::sqrt(own) + shared);
        }
    return product;
}

/// A norm of rows, as long as its weight. With d the deviations from the mean, an element is d f w
/// + b for f = 1 / sqrt(v + eps), whose relative error is half that of v + eps. Only the errors are
/// those after the norm.
void norm_errors(Bounded& x, const InputNorm& norm, const Roundoff& roundoff) {
    const std::size_t width = norm.weight.size();
    const double u = roundoff.unit(), g = roundoff.sum(width + 1);
    const auto count = static_cast<double>(width);
    std::vector<double>&own = x.errors.own, &shared = x.errors.shared;
    for (std::size_t first = 0; first < x.values.size(); first += width) {
        const std::size_t end = first + width;
        double mean = 0, magnitude = 0, of_mean = 0, own_of_mean = 0;
        for (std::size_t i = first; i < end && !norm.is_rms; ++i) {
            mean += x.values[i] / count;
            magnitude += std::abs(x.values[i]) / count;
            of_mean += shared[i] / count;
            own_of_mean += squared(own[i] / count);
        }
        of_mean += std::sqrt(own_of_mean) + g * magnitude + u * std::abs(mean);
        double squares = 0, of_squares = 0, own_of_squares = 0;
        for (std::size_t i = first; i < end; ++i) {
            const double d = std::abs(x.values[i] - mean);
            if (!norm.is_rms) {
                shared[i] += of_mean;
                own[i] = std::hypot(own[i], u * d);
            }
            squares += d * d / count;
            of_squares += (2 * d + shared[i]) * shared[i] / count;
            own_of_squares += squared((2 * d + own[i]) * own[i] / count);
        }
        const double variance = squares + norm.eps;
        const double relative =
            (g * squares + of_squares + std::sqrt(own_of_squares)) / variance / 2 + 2 * u;
        for (std::size_t i = first; i < end; ++i) {
            const std::size_t column = i - first;
            const double bias = norm.bias.empty() ? 0 : std::abs(norm.bias[column]),
                         d = std::abs(x.values[i] - mean),
                         factor = std::abs(norm.weight[column]) / std::sqrt(variance);
            shared[i] = factor * (shared[i] + d * relative);
            own[i] = std::hypot(factor * own[i], u * (4 * factor * d + 2 * bias));
        }
    }
}

/// x / sqrt(sum of squares + 1e-6), as a norm by the root mean square.
InputNorm unit_length(std::size_t width) {
    const auto d = static_cast<double>(width);
    InputNorm norm;
    norm.weight.assign(width, 1 / std::sqrt(d));
    norm.is_rms = true;
    norm.eps = 1e-6 / d;
    return norm;
}

/// A rotation of the rows from `first` by angles of position * frequency, which programs compute in
/// float64 and round. `x` has the values after it.
void rotate_errors(const RopeSettings& rope, BoundedHeads& x, std::size_t first,
                   std::size_t first_position, const Roundoff& roundoff) {
    if (rope.dims == 0) return;
    constexpr double float64_unit = 0x1p-53;
    const double frequency = largest(rope.frequencies()),
                 of_frequency = 4 + std::abs(std::log(rope.base));
    const std::size_t pairs = rope.dims / 2;
    for (std::size_t row = 0; row * x.columns < x.values.size(); ++row) {
        if (row % x.rows < first) continue;
        const auto position = static_cast<double>(row % x.rows - first + first_position);
        const double of_angle = float64_unit * (position * frequency * of_frequency + 2);
        for (std::size_t n = 0; n < pairs; ++n) {
            const bool half = rope.pairs == Rope::half;
            const std::size_t a = row * x.columns + (half ? n : 2 * n), b = a + (half ? pairs : 1);
            // An orthogonal map: sums over the columns have the same errors as before it.
            const double own = std::max(x.errors.own[a], x.errors.own[b]),
                         shared = std::hypot(x.errors.shared[a], x.errors.shared[b]),
                         rounded = std::hypot(x.values[a], x.values[b]) *
                                   (of_angle + 2 * roundoff.unit());
            x.errors.own[a] = x.errors.own[b] = std::hypot(own, rounded);
            x.errors.shared[a] = x.errors.shared[b] = shared;
        }
    }
}

/// The errors of heads, (batch, heads, rows, columns), from those of the rows from `first`.
/// Projections are (batch, rows, heads * columns); without one, each head may have the same
/// columns.
void take_errors(const Plan& plan, std::size_t heads, std::size_t first, const Errors& errors,
                 BoundedHeads& to) {
    const bool is_merged = plan.projects || plan.packed;
    const std::size_t rows = to.rows - first;
    const bool is_shared = errors.own.size() != plan.batch * heads * rows * to.columns;
    to.errors = Errors(to.values.size());
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t t = 0; t < rows; ++t)
                for (std::size_t c = 0; c < to.columns; ++c) {
                    const std::size_t from = is_shared ? (b * rows + t) * to.columns + c
                                             : is_merged
                                                 ? ((b * rows + t) * heads + h) * to.columns + c
                                                 : ((b * heads + h) * rows + t) * to.columns + c;
                    const std::size_t at = ((b * heads + h) * to.rows + first + t) * to.columns + c;
                    to.errors.own[at] = errors.own[from];
                    to.errors.shared[at] = errors.shared[from];
                }
}

}  // namespace

double largest(const std::vector<double>& values) {
    double most = 0;
    for (const double x : values)
        if (std::isfinite(x)) most = std::max(most, std::abs(x));
    return most;
}

double largest_error(const std::vector<double>& errors) {
    double most = 0;
    for (const double x : errors)
        most = x <= most ? most : std::isnan(x) ? std::numeric_limits<double>::infinity() : x;
    return most;
}

double Errors::largest() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < own.size(); ++i) all.push_back(std::hypot(own[i], shared[i]));
    return largest_error(all);
}

double length(std::span<const double> x) {
    double squares = 0;
    for (const double value : x) squares += value * value;
    return std::sqrt(squares);
}

std::vector<double> numbers_named(const char* name, const Result& result) {
    const NamedArray* array = array_named(name, result.arrays);
    return array == nullptr ? std::vector<double>() : numbers_of(*array);
}

BoundedOperands bounded_operands(const Repro& program, const Result& result,
                                 const Roundoff& roundoff) {
    const Plan& plan = program.plan;
    const auto exact = [](const ProgramArray& array) {
        return Bounded{array.values, Errors(array.values.size())};
    };
    Bounded tokens, source;
    if (plan.projects) {
        tokens = exact(*program.find("inputs"));
        if (program.input_norm) {
            norm_errors(tokens, program.input_norm->norm, roundoff);
            tokens.values = numbers_named("normed_inputs", result);
        }
        source = program.has("context") ? exact(*program.find("context")) : tokens;
    }
    BoundedOperands all;
    BoundedHeads* const to[] = {&all.query, &all.key, &all.value};
    const char* const weights[] = {"W_query", "W_key", "W_value"};
    const char* const biases[] = {"b_query", "b_key", "b_value"};
    const char* const given[] = {"query", "key", "value"};
    const char* const cached[] = {"queries", "present_key", "present_value"};
    for (std::size_t i = 0; i < 3; ++i) {
        BoundedHeads& x = *to[i];
        const bool is_query = i == 0;
        const Bounded& from = is_query ? tokens : source;
        Bounded before;  // the rows of heads before their norms
        if (const ProgramArray* w = program.find(weights[i]))
            before = multiply(from, *w, program.is_in_out(*find_array(weights[i])),
                              program.find(biases[i]), roundoff);
        else
            before = plan.projects ? from : exact(*program.find(given[i]));
        const auto& norm = is_query ? program.query_norm : program.key_norm;
        if (i < 2 && norm) norm_errors(before, norm->norm, roundoff);
        if (i < 2 && plan.qk_norm) norm_errors(before, unit_length(plan.d_k), roundoff);
        x.values = numbers_named(program.is_linear() ? array_of_heads[i] : cached[i], result);
        x.rows = is_query ? plan.q_len : plan.kv_len;
        x.columns = i < 2 ? plan.d_k : plan.d_v;
        take_errors(plan, is_query ? plan.heads : plan.kv_heads, is_query ? 0 : plan.past_len,
                    before.errors, x);
        if (i < 2)
            rotate_errors(plan.rope, x, is_query ? 0 : plan.past_len, plan.past_len, roundoff);
    }
    return all;
}

double bound_after_heads(const Repro& program, const Result& result, const Roundoff& roundoff,
                         const Errors& head_outputs) {
    const ProgramArray* w = program.find("W_out");
    if (w == nullptr) return head_outputs.largest();
    // (batch, heads, rows, d_v) as (batch, rows, heads * d_v)
    const Plan& plan = program.plan;
    const std::vector<double> heads = numbers_named("head_outputs", result);
    Bounded merged;
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t row = 0; row < plan.q_len; ++row)
            for (std::size_t h = 0; h < plan.heads; ++h)
                for (std::size_t c = 0; c < plan.d_v; ++c) {
                    const std::size_t at = ((b * plan.heads + h) * plan.q_len + row) * plan.d_v + c;
                    merged.values.push_back(heads[at]);
                    merged.errors.own.push_back(head_outputs.own[at]);
                    merged.errors.shared.push_back(head_outputs.shared[at]);
                }
    return multiply(merged, *w, program.is_in_out("W_out"), program.find("b_out"), roundoff)
        .errors.largest();
}

}  // namespace attn::cli
