// The weights that another program's arrays show, and which keys its queries attend to.
#include "core/check/comparison.hpp"

namespace attn {
namespace {

/// Relative to the largest weight of a row: errors of recovered weights are smaller, and given
/// weights below the second may be 0 because they underflow.
constexpr double least_recovered = 1e-3, least_given = 1e-6;

/// How b is the sum of x times the rows of A: from A A^T x = A b, factored once for all b.
class Unmixing {
public:
    explicit Unmixing(const RowsView& rows) : rows_(rows), a_(rows.rows * rows.rows) {
        const std::size_t n = rows.rows;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j)
                a_[i * n + j] = inner_product(rows.at(i), rows.at(j), rows.columns);
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = i + 1; j < n; ++j) {
                const double factor = a_[j * n + i] /= a_[i * n + i];
                for (std::size_t c = i + 1; c < n; ++c) a_[j * n + c] -= factor * a_[i * n + c];
            }
    }

    /// Empty: not in one way.
    std::vector<double> solve(const double* b) const {
        const std::size_t n = rows_.rows;
        std::vector<double> x(n);
        for (std::size_t j = 0; j < n; ++j) {
            x[j] = inner_product(rows_.at(j), b, rows_.columns);
            for (std::size_t i = 0; i < j; ++i) x[j] -= a_[j * n + i] * x[i];
        }
        for (std::size_t i = n; i-- > 0;) {
            for (std::size_t c = i + 1; c < n; ++c) x[i] -= a_[i * n + c] * x[c];
            x[i] /= a_[i * n + i];
            if (!std::isfinite(x[i])) return {};
        }
        return x;
    }

private:
    RowsView rows_;
    std::vector<double> a_;  ///< the triangular factors of A A^T
};

/// Of outputs that are not projected, where rows have no more keys than columns.
std::vector<double> recovered_weights(const Problem& problem, const TheirArray& outputs,
                                      Candidate& asked) {
    const Plan& plan = problem.plan;
    const std::size_t d = plan.d_v, width = outputs.shape[3];
    if (plan.kv_len > d || problem.projection[index_of(Tensor::out)] ||
        outputs.values.size() != plan.batch * plan.heads * plan.rows * d)
        return {};
    std::vector<double> weights;
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t h = 0; h < plan.heads; ++h) {
            BoundedRows values(plan.kv_len, d);
            for (std::size_t k = 0; k < plan.kv_len; ++k)
                std::ranges::copy(
                    asked.row("present_value", b, h * plan.kv_heads / plan.heads, k).value,
                    values.at(k));
            const Unmixing unmixing(values.view());
            for (std::size_t row = 0; row < plan.rows; ++row) {
                const std::size_t joined = (b * plan.rows + row) * width + h * d,
                                  apart = ((b * plan.heads + h) * plan.rows + row) * d;
                const std::vector<double> x =
                    unmixing.solve(outputs.values.data() + (width == d ? apart : joined));
                if (x.empty()) return {};
                weights.insert(weights.end(), x.begin(), x.end());
            }
        }
    return weights;
}

}  // namespace

std::optional<SeenWeights> seen_weights(const Problem& problem,
                                        const std::vector<TheirArray>& arrays) {
    const Plan& plan = problem.plan;
    if (plan.config.rule || problem.asked.drops) return std::nullopt;
    const Evaluator evaluator(problem, NumberType::float64);
    Conventions open = problem.asked;
    open.band.causal = open.mask_mod = false;
    open.band.left = open.band.right = -1;
    Candidate unmasked(evaluator, open, false), asked(evaluator, problem.asked, false);
    SeenWeights seen;
    double least = least_recovered;
    for (const TheirArray& array : arrays) {
        if (array.id == "attention_weights" &&
            array.shape == std::array{plan.batch, plan.heads, plan.rows, plan.kv_len}) {
            seen.weights = array.values;
            least = 0;
        } else if (array.id == "context_vectors" && seen.weights.empty()) {
            seen.weights = recovered_weights(problem, array, unmasked);
        }
    }
    if (seen.weights.empty()) return std::nullopt;
    const double* weights = seen.weights.data();
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t h = 0; h < plan.heads; ++h)
            for (std::size_t row = 0; row < plan.rows; ++row, weights += plan.kv_len) {
                const std::vector<double> size =
                    unmasked.row("weights_before_dropout", b, h, row).value;
                const std::vector<double>&open_mask = unmasked.row("mask", b, h, row).value,
                      &own_mask = asked.row("mask", b, h, row).value;
                double largest = 0, largest_asked = 0;
                for (std::size_t k = 0; k < plan.kv_len; ++k) {
                    largest = std::max(largest, std::abs(weights[k]));
                    if (weights[k] != 0) largest_asked = std::max(largest_asked, size[k]);
                }
                for (std::size_t k = 0; k < plan.kv_len; ++k) {
                    const bool attends = std::abs(weights[k]) > least * largest,
                               is_small =
                                   !(size[k] > std::max(3 * least, least_given) * largest_asked);
                    const bool is_known = open_mask[k] != 0 && (attends || !is_small);
                    if (is_known && !seen.departs && attends != (own_mask[k] != 0))
                        seen.departs = {b, h, row};
                    seen.keys.push_back(!is_known ? SeenKey::unknown
                                        : attends ? SeenKey::attended
                                                  : SeenKey::excluded);
                }
            }
    return seen;
}

}  // namespace attn
