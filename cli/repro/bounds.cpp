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

    Tolerances bounds() const {
        const double scores = of_scores();
        std::vector<double> weights = of_softmax(scores);
        if (program_.has("dropout_kept")) {
            const std::vector<double>& kept = program_.find("dropout_kept")->values;
            for (std::size_t i = 0; i < weights.size(); ++i)
                weights[i] *= kept[i] * program_.kept_weight * (1 + 2 * u_);
        }
        return {largest(weights), of_head_outputs(weights)};
    }

private:
    double of_scores() const {
        const double product = of_product();
        const std::vector<double> scaled = numbers_named("scaled_scores", result_),
                                  capped = numbers_named("capped_scores", result_);
        double error = std::abs(plan_.scale) * product + 2 * u_ * largest(scaled);
        // |dy/dx| <= 1; the last bits of tanh and of x / c
        if (plan_.softcap != 0) error += 6 * u_ * std::min(plan_.softcap, largest(scaled));
        double most = largest(capped);
        if (plan_.alibi) {
            const double term = static_cast<double>(plan_.q_len + plan_.kv_len) *
                                std::exp2(-8.0 / static_cast<double>(plan_.heads));
            most += term;
            error += 2 * u_ * term + u_ * most;
        }
        for (const std::string& mask : program_.additive_masks) {
            most += largest(program_.find(mask)->values);
            error += u_ * most;
        }
        return error;
    }

    /// Of Q K^T: the errors of both factors, and that of the sum.
    double of_product() const {
        const BoundedHeads &q = operands_.query, &k = operands_.key;
        double of_queries = 0, of_keys = 0, magnitude = 0;
        const auto sum = [&](const double* row) {
            double all = 0;
            for (std::size_t i = 0; i < plan_.d_k; ++i) all += std::abs(row[i]);
            return all;
        };
        for (std::size_t head = 0; head < plan_.batch * plan_.heads; ++head)
            for (std::size_t i = 0; i < q.rows; ++i) {
                of_queries = std::max(of_queries, sum(q.row(head, i)));
                for (std::size_t j = 0; j < k.rows; ++j) {
                    double products = 0;
                    const double* const key = k.row(head / program_.group(), j);
                    for (std::size_t c = 0; c < plan_.d_k; ++c)
                        products += std::abs(q.row(head, i)[c] * key[c]);
                    magnitude = std::max(magnitude, products);
                    if (i == 0) of_keys = std::max(of_keys, sum(key));
                }
            }
        return of_keys * q.error + of_queries * k.error +
               static_cast<double>(plan_.d_k) * q.error * k.error +
               roundoff_.sum(plan_.d_k) * magnitude;
    }

    /// Of each weight. All scores may be wrong by `scores` in any direction, which changes a weight
    /// by a factor of up to exp(2 scores). x - max is rounded, and |x - max| <= -log(weight).
    std::vector<double> of_softmax(double scores) const {
        const double relative = std::expm1(2 * scores) + roundoff_.sum(plan_.kv_len + 2) + 8 * u_;
        const auto error = [&](double weight) {
            return weight == 0 ? 0 : weight * (relative - 2 * u_ * std::log(weight));
        };
        std::vector<double> weights = numbers_named("weights_before_dropout", result_);
        if (!program_.renormalizes()) {
            std::transform(weights.begin(), weights.end(), weights.begin(), error);
            return weights;
        }
        // weights = masked / total; numbers below the smallest normal one have fewer digits
        const std::vector<double> masked = numbers_named("masked_weights", result_);
        const std::size_t keys = plan_.kv_len;
        const double least = row_of(plan_.dtype).least * u_;
        for (std::size_t row = 0; row < weights.size(); row += keys) {
            double total = 0, of_total = 0;
            for (std::size_t k = row; k < row + keys; ++k) {
                total += masked[k];
                of_total += error(masked[k]) + least;
            }
            of_total += total * roundoff_.sum(keys);
            for (std::size_t k = row; k < row + keys; ++k)
                weights[k] = total == 0 ? 0
                                        : (error(masked[k]) + least) / total +
                                              weights[k] * (of_total / total + 2 * u_);
        }
        return weights;
    }

    double of_head_outputs(const std::vector<double>& of_weights) const {
        const BoundedHeads& v = operands_.value;
        const std::vector<double> weights = numbers_named("attention_weights", result_);
        const std::size_t keys = plan_.kv_len;
        double most = 0;
        for (std::size_t row = 0; row * keys < weights.size(); ++row)
            for (std::size_t c = 0; c < plan_.d_v; ++c) {
                double error = 0, magnitude = 0;
                for (std::size_t k = 0; k < keys; ++k) {
                    const double value =
                        std::abs(v.row(row / plan_.q_len / program_.group(), k)[c]);
                    const double weight = weights[row * keys + k];
                    error += of_weights[row * keys + k] * value + weight * v.error;
                    magnitude += weight * value;
                }
                most = std::max(most, error + roundoff_.sum(keys) * magnitude);
            }
        return most;
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
    Tolerances bounds = program.is_linear() ? linear_bounds(program, result, roundoff)
                                            : SoftmaxBounds(program, result, roundoff).bounds();
    bounds.context_vectors = bound_after_heads(program, result, roundoff, bounds.context_vectors);
    // Both programs round, and results below the smallest normal number may be flushed to 0.
    const double least = row_of(program.plan.dtype).least;
    return {2 * bounds.attention_weights + least, 2 * bounds.context_vectors + least};
}

}  // namespace attn::cli
