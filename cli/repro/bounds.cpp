#include "cli/repro/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/repro/bound_steps.hpp"
#include "cli/repro/program.hpp"
#include "core/operator/score_steps.hpp"

namespace attn::cli {
namespace {

/// The errors of softmax attention from the product on.
class SoftmaxBounds {
public:
    SoftmaxBounds(const Repro& program, const Result& result, const Roundoff& roundoff)
        : program_(program), plan_(program.plan), result_(result), roundoff_(roundoff),
          u_(roundoff.unit()), operands_(bounded_operands(program, result, roundoff)) {}

    HeadBounds bounds() const {
        const std::vector<double> scores = of_scores();
        std::vector<double> weights = of_softmax(scores);
        if (program_.has("dropout_kept")) {
            const std::vector<double>& kept = program_.find("dropout_kept")->values;
            for (std::size_t i = 0; i < weights.size(); ++i)
                weights[i] *= kept[i] * program_.kept_weight * (1 + 2 * u_);
        }
        return {largest_error(weights), of_head_outputs(weights)};
    }

private:
    /// Calls use(at, b, h, i, j) for each score.
    template <class Use>
    void for_each_score(const Use& use) const {
        std::size_t at = 0;
        for (std::size_t b = 0; b < plan_.batch; ++b)
            for (std::size_t h = 0; h < plan_.heads; ++h)
                for (std::size_t i = 0; i < plan_.q_len; ++i)
                    for (std::size_t j = 0; j < plan_.kv_len; ++j) use(at++, b, h, i, j);
    }

    std::vector<double> of_scores() const {
        const std::vector<double> scaled = numbers_named("scaled_scores", result_);
        std::vector<double> errors(scaled.size()), values = numbers_named("capped_scores", result_);
        for_each_score([&](std::size_t at, std::size_t b, std::size_t h, std::size_t i,
                           std::size_t j) {
            const double score = std::abs(scaled[at]);
            double error =
                std::abs(plan_.scale) * of_product(b * plan_.heads + h, i, j) + 2 * u_ * score;
            // |dy/dx| <= 1; the last bits of tanh and of x / c
            if (plan_.softcap != 0) error += 6 * u_ * std::min(plan_.softcap, score);
            values[at] = std::abs(values[at]);
            if (plan_.alibi) {
                const auto& offsets = plan_.offset.values();
                const double position = static_cast<double>(i) +
                                        static_cast<double>(offsets[offsets.size() > 1 ? b : 0]);
                const double term =
                    std::abs(static_cast<double>(j) - position) *
                    std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(plan_.heads));
                values[at] += term;
                error += 4 * u_ * term + u_ * values[at];
            }
            errors[at] = error;
        });
        for (const std::string& name : program_.additive_masks)
            add_mask(*program_.find(name), values, errors);
        return errors;
    }

    /// `mask` broadcasts to (batch, heads, q_len, kv_len).
    void add_mask(const ProgramArray& mask, std::vector<double>& values,
                  std::vector<double>& errors) const {
        const std::vector<std::size_t>& n = mask.full;
        for_each_score(
            [&](std::size_t at, std::size_t b, std::size_t h, std::size_t i, std::size_t j) {
                const std::size_t row =
                    ((n[0] == 1 ? 0 : b) * n[1] + (n[1] == 1 ? 0 : h)) * n[2] + (n[2] == 1 ? 0 : i);
                const double x = mask.values[row * n[3] + (n[3] == 1 ? 0 : j)];
                if (std::isinf(x)) return;
                values[at] += std::abs(x);
                errors[at] += u_ * values[at];
            });
    }

    /// Of an element of Q K^T: the errors of both factors, and that of the sum.
    double of_product(std::size_t head, std::size_t i, std::size_t j) const {
        const BoundedHeads &queries = operands_.query, &keys = operands_.key;
        const std::size_t group = head / program_.group();
        const std::span q = queries.row(head, i), k = keys.row(group, j),
                        own_q = queries.own(head, i), own_k = keys.own(group, j),
                        shared_q = queries.shared(head, i), shared_k = keys.shared(group, j);
        double own = 0, shared = 0, magnitude = 0;
        for (std::size_t c = 0; c < plan_.d_k; ++c) {
            const double of_q = own_q[c] * (std::abs(k[c]) + own_k[c] + shared_k[c]),
                         of_k = own_k[c] * (std::abs(q[c]) + shared_q[c]);
            own += of_q * of_q + of_k * of_k;
            shared += std::abs(q[c]) * shared_k[c] + shared_q[c] * (std::abs(k[c]) + shared_k[c]);
            magnitude += std::abs(q[c] * k[c]);
        }
        const double rounded = roundoff_.sum(plan_.d_k) * magnitude;
        return std::sqrt(own + rounded * rounded) + shared;
    }

    /// Of each weight w_k = exp(s_k) / sum of exp(s_j): if each s_j may be wrong by e_j, it is at
    /// most w_k exp(e_k) / (w_k exp(e_k) + sum over the others of w_j exp(-e_j)), and at least the
    /// same with all signs changed. What is left of a sum of 1 has the sink. x - max is rounded,
    /// and |x - max| <= -log(weight). Renormalised weights are also a softmax, over fewer keys,
    /// with the roundings of both.
    std::vector<double> of_softmax(const std::vector<double>& scores) const {
        std::vector<double> weights = numbers_named("weights_before_dropout", result_), masked;
        if (program_.renormalizes()) masked = numbers_named("masked_weights", result_);
        const std::size_t keys = plan_.kv_len;
        for (std::size_t row = 0; row < weights.size(); row += keys) {
            const std::span<double> w(&weights[row], keys);
            const std::span<const double> e(&scores[row], keys);
            const std::vector<double> roundings =
                masked.empty() ? of_exponentials(w) : of_renormalised(w, {&masked[row], keys});
            double low = 0, high = 0, left = 1;
            for (std::size_t k = 0; k < keys; ++k) {
                low += w[k] * std::exp(-e[k]);
                high += w[k] * std::exp(e[k]);
                left -= w[k];
            }
            if (!plan_.sink.empty()) low += std::max(left, 0.0), high += std::max(left, 0.0);
            for (std::size_t k = 0; k < keys; ++k) {
                if (w[k] == 0) continue;
                const double up = std::exp(e[k]), down = std::exp(-e[k]);
                const double factor = std::max(up / (low + w[k] * (up - down)) - 1,
                                               1 - down / (high - w[k] * (up - down)));
                w[k] = w[k] * factor + roundings[k];
            }
        }
        return weights;
    }

    /// The error of each weight of a row by the softmax's own roundings.
    std::vector<double> of_exponentials(std::span<const double> weights) const {
        const double relative = roundoff_.sum(plan_.kv_len + 2) + 8 * u_;
        std::vector<double> errors(weights.size());
        for (std::size_t k = 0; k < weights.size(); ++k)
            if (weights[k] != 0)
                errors[k] = weights[k] * (relative - 2 * u_ * std::log(weights[k]));
        return errors;
    }

    /// The same of weights that are `masked` / total; numbers below the smallest normal one have
    /// fewer digits.
    std::vector<double> of_renormalised(std::span<const double> weights,
                                        std::span<const double> masked) const {
        const double least = row_of(plan_.dtype).least * u_;
        std::vector<double> errors = of_exponentials(masked);
        double total = 0, of_total = 0;
        for (std::size_t k = 0; k < masked.size(); ++k) {
            errors[k] += least;
            total += masked[k];
            of_total += errors[k];
        }
        const double relative = of_total / total + roundoff_.sum(masked.size()) + 2 * u_;
        for (std::size_t k = 0; k < masked.size(); ++k)
            errors[k] = total == 0 ? 0 : errors[k] / total + weights[k] * relative;
        return errors;
    }

    Errors of_head_outputs(const std::vector<double>& of_weights) const {
        const std::vector<double> weights = numbers_named("attention_weights", result_);
        const std::size_t keys = plan_.kv_len, d_v = plan_.d_v;
        Errors errors;
        for (std::size_t row = 0; row * keys < weights.size(); ++row) {
            const std::size_t group = row / plan_.q_len / program_.group();
            std::vector<double> magnitudes(d_v), own(d_v), shared(d_v);
            for (std::size_t k = 0; k < keys; ++k) {
                const double weight = weights[row * keys + k], error = of_weights[row * keys + k];
                const std::span v = operands_.value.row(group, k),
                                own_v = operands_.value.own(group, k),
                                shared_v = operands_.value.shared(group, k);
                for (std::size_t c = 0; c < d_v; ++c) {
                    own[c] += weight * weight * own_v[c] * own_v[c];
                    shared[c] += error * std::abs(v[c]) + weight * shared_v[c];
                    magnitudes[c] += weight * std::abs(v[c]);
                }
            }
            for (std::size_t c = 0; c < d_v; ++c) {
                errors.own.push_back(
                    std::hypot(std::sqrt(own[c]), roundoff_.sum(keys) * magnitudes[c]));
                errors.shared.push_back(shared[c]);
            }
        }
        return errors;
    }

    const Repro& program_;
    const Plan& plan_;
    const Result& result_;
    const Roundoff& roundoff_;
    double u_;
    BoundedOperands operands_;
};

}  // namespace

Roundoff::Roundoff(Dtype dtype) : unit_(dtype == Dtype::float32 ? 0x1p-24 : 0x1p-53) {}

double Roundoff::sum(std::size_t n) const {
    constexpr double lambda = 5;
    const auto terms = static_cast<double>(n);
    const double certain = terms * unit_ < 1 ? terms * unit_ / (1 - terms * unit_)
                                             : std::numeric_limits<double>::infinity();
    const double probable =
        std::expm1(lambda * std::sqrt(terms) * unit_ + terms * unit_ * unit_ / (1 - unit_));
    return std::min(certain, probable);
}

Tolerances tolerances_of(const Repro& program, const Result& result) {
    const Roundoff roundoff(program.plan.dtype);
    const HeadBounds bounds = program.is_linear()
                                  ? linear_bounds(program, result, roundoff)
                                  : SoftmaxBounds(program, result, roundoff).bounds();
    const double context = bound_after_heads(program, result, roundoff, bounds.head_outputs);
    // Both programs round, and results below the smallest normal number may be flushed to 0.
    const double least = row_of(program.plan.dtype).least;
    return {2 * bounds.attention_weights + least, 2 * context + least};
}

}  // namespace attn::cli
