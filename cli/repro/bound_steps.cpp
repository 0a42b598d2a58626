#include "cli/repro/bound_steps.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/operator/rope.hpp"

namespace attn::cli {
namespace {

/// A product x W^T + b: its elements, the largest sum of absolute values, and the largest sum of
/// |W| of an output.
struct BoundedProduct {
    std::vector<double> values;
    double magnitude = 0, weight = 0;
};

/// `x` is (batch * rows, columns) of tokens; the result (batch, rows, groups * d_out).
BoundedProduct multiply(const std::vector<double>& x, const ProgramArray& w, bool in_out,
                        const ProgramArray* bias) {
    const std::size_t groups = w.full[0], in = w.full[in_out ? 1 : 2], out = w.full[in_out ? 2 : 1],
                      rows = x.size() / in;
    BoundedProduct product;
    product.values.reserve(rows * groups * out);
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t o = 0; o < groups * out; ++o) {
            const std::size_t group = o / out, column = o % out;
            double sum = bias != nullptr ? bias->values[o] : 0, magnitude = std::abs(sum),
                   weight = 0;
            for (std::size_t i = 0; i < in; ++i) {
                const double factor =
                    w.values[group * in * out + (in_out ? i * out + column : column * in + i)];
                sum += x[row * in + i] * factor;
                magnitude += std::abs(x[row * in + i] * factor);
                weight += std::abs(factor);
            }
            product.values.push_back(sum);
            product.magnitude = std::max(product.magnitude, magnitude);
            product.weight = std::max(product.weight, weight);
        }
    return product;
}

/// The error of a norm of rows of `width` numbers, each with the error `error`. With x - m the
/// deviation and f = 1 / sqrt(v + eps), an element is (x - m) f w; the relative error of f is half
/// that of v + eps.
double norm_error(const std::vector<double>& x, std::size_t width, bool is_rms, double eps,
                  double weight, double error, const Roundoff& roundoff) {
    const double u = roundoff.unit(), g = roundoff.sum(width + 1);
    const auto count = static_cast<double>(width);
    double most = 0;
    for (std::size_t first = 0; first < x.size(); first += width) {
        double mean = 0, magnitude = 0, squares = 0, deviation = 0, deviations = 0;
        for (std::size_t i = 0; i < width && !is_rms; ++i) mean += x[first + i] / count;
        for (std::size_t i = 0; i < width; ++i) {
            const double d = std::abs(x[first + i] - mean);
            magnitude += std::abs(x[first + i]) / count;
            squares += d * d / count;
            deviation = std::max(deviation, d);
            deviations += d / count;
        }
        const double of_deviation =
            is_rms ? error : 2 * error + g * magnitude + u * (deviation + std::abs(mean));
        const double variance = squares + eps;
        const double relative =
            (g * squares + 2 * of_deviation * deviations) / variance / 2 + 4 * u;
        most = std::max(
            most, weight / std::sqrt(variance) * (of_deviation + deviation * (relative + 2 * u)));
    }
    return most;
}

double error_of_norm(const ProgramNorm& norm, const std::vector<double>& x, std::size_t width,
                     double error, const Roundoff& roundoff) {
    const double bias = largest(norm.norm.bias);
    return norm_error(x, width, norm.norm.is_rms, norm.norm.eps, largest(norm.norm.weight), error,
                      roundoff) +
           2 * roundoff.unit() * bias;
}

/// (batch, rows, heads * columns) as rows of one head or of all heads together: a norm does not
/// depend on the order of rows.
double error_of_head_norm(const std::optional<ProgramNorm>& norm, const std::vector<double>& packed,
                          double error, const Roundoff& roundoff) {
    return norm ? error_of_norm(*norm, packed, norm->norm.weight.size(), error, roundoff) : error;
}

/// A rotation by angles of position * frequency, which programs compute in float64 and round.
double rotation_error(const Repro& program, const Roundoff& roundoff, double x, double error,
                      std::size_t positions) {
    const RopeSettings& rope = program.plan.rope;
    if (rope.dims == 0) return error;
    constexpr double float64_unit = 0x1p-53;
    const double angle = static_cast<double>(positions) * largest(rope.frequencies());
    const double of_angle = float64_unit * (angle * (4 + std::abs(std::log(rope.base))) + 2);
    return std::numbers::sqrt2 * (error + x * (of_angle + 2 * roundoff.unit()));
}

}  // namespace

double largest(const std::vector<double>& values) {
    double most = 0;
    for (const double x : values)
        if (std::isfinite(x)) most = std::max(most, std::abs(x));
    return most;
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
    double of_tokens = 0;
    std::vector<double> tokens, source;
    if (plan.projects) {
        const ProgramArray& inputs = *program.find("inputs");
        tokens = inputs.values;
        if (program.input_norm) {
            of_tokens = error_of_norm(*program.input_norm, tokens, plan.d_in, 0, roundoff);
            tokens = numbers_named("normed_inputs", result);
        }
        source = program.has("context") ? program.find("context")->values : tokens;
    }
    BoundedOperands all;
    BoundedHeads* const to[] = {&all.query, &all.key, &all.value};
    const char* const weights[] = {"W_query", "W_key", "W_value"};
    const char* const biases[] = {"b_query", "b_key", "b_value"};
    const char* const given[] = {"query", "key", "value"};
    for (std::size_t i = 0; i < 3; ++i) {
        BoundedHeads& x = *to[i];
        const bool is_query = i == 0;
        const double of_source = is_query || !program.has("context") ? of_tokens : 0;
        std::vector<double> before;  // rows of heads before their norms
        if (const ProgramArray* w = program.find(weights[i])) {
            const BoundedProduct product =
                multiply(is_query ? tokens : source, *w, program.is_in_out(*find_array(weights[i])),
                         program.find(biases[i]));
            const std::size_t in = w->full[program.is_in_out(*find_array(weights[i])) ? 1 : 2];
            x.error = product.weight * of_source + roundoff.sum(in + 1) * product.magnitude;
            before = product.values;
        } else {
            x.error = of_source;
            before = plan.projects ? (is_query ? tokens : source) : program.find(given[i])->values;
        }
        if (is_query) x.error = error_of_head_norm(program.query_norm, before, x.error, roundoff);
        if (i == 1) x.error = error_of_head_norm(program.key_norm, before, x.error, roundoff);
        if (i < 2 && plan.qk_norm) {
            const auto d = static_cast<double>(plan.d_k);
            x.error =
                norm_error(before, plan.d_k, true, 1e-6 / d, 1 / std::sqrt(d), x.error, roundoff);
        }
        if (i < 2)
            x.error = rotation_error(program, roundoff, largest(before), x.error,
                                     plan.past_len + (is_query ? plan.q_len : program.new_keys()));
        const char* const cached[] = {"queries", "present_key", "present_value"};
        x.values = numbers_named(program.is_linear() ? array_of_heads[i] : cached[i], result);
        x.rows = is_query ? plan.q_len : plan.kv_len;
        x.columns = i < 2 ? plan.d_k : plan.d_v;
    }
    return all;
}

double bound_after_heads(const Repro& program, const Result& result, const Roundoff& roundoff,
                         double head_outputs) {
    const ProgramArray* w = program.find("W_out");
    if (w == nullptr) return head_outputs;
    // (batch, heads, rows, d_v) as (batch, rows, heads * d_v)
    const Plan& plan = program.plan;
    const std::vector<double> heads = numbers_named("head_outputs", result);
    std::vector<double> merged;
    merged.reserve(heads.size());
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t row = 0; row < plan.q_len; ++row)
            for (std::size_t h = 0; h < plan.heads; ++h) {
                const auto first =
                    heads.begin() + static_cast<std::ptrdiff_t>(
                                        ((b * plan.heads + h) * plan.q_len + row) * plan.d_v);
                merged.insert(merged.end(), first, first + static_cast<std::ptrdiff_t>(plan.d_v));
            }
    const BoundedProduct product =
        multiply(merged, *w, program.is_in_out("W_out"), program.find("b_out"));
    return product.weight * head_outputs +
           roundoff.sum(plan.heads * plan.d_v + 1) * product.magnitude;
}

}  // namespace attn::cli
