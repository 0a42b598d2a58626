// The weights that another program's arrays show, and which keys its queries attend to.
#include "core/check/comparison.hpp"

namespace attn {
namespace {

/// Of the largest weight of a row: those that are recovered from outputs have errors below the
/// first, and smaller weights than the second may be 0 in another program because they underflow.
constexpr double least_recovered = 1e-3, least_sure = 1e-6;

/// Solves (A A^T) x = A b for the rows of A: how b is the sum of x times them. Empty: it is not, or
/// not in one way.
class Unmixing {
public:
    explicit Unmixing(RowsView rows) : rows_(rows), factor_(rows.rows * rows.rows) {
        for (std::size_t i = 0; i < rows.rows; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                double sum = inner_product(rows.at(i), rows.at(j), rows.columns);
                const double size = sum;
                for (std::size_t m = 0; m < j; ++m) sum -= at(i, m) * at(j, m);
                constexpr double independent = 1e-6;
                if (i == j && !(sum > independent * size)) is_unique_ = false;
                at(i, j) = i == j ? std::sqrt(sum) : sum / at(j, j);
            }
    }

    std::vector<double> solve(std::span<const double> mixed) {
        const std::size_t n = rows_.rows;
        if (!is_unique_) return {};
        std::vector<double> x(n), rest(mixed.begin(), mixed.end());
        for (std::size_t i = 0; i < n; ++i) {
            x[i] = inner_product(rows_.at(i), mixed.data(), mixed.size());
            for (std::size_t m = 0; m < i; ++m) x[i] -= at(i, m) * x[m];
            x[i] /= at(i, i);
        }
        double size = 0, left = 0;
        for (std::size_t i = n; i-- > 0;) {
            for (std::size_t m = i + 1; m < n; ++m) x[i] -= at(m, i) * x[m];
            x[i] /= at(i, i);
            for (std::size_t c = 0; c < rest.size(); ++c) rest[c] -= x[i] * rows_.at(i)[c];
        }
        for (std::size_t c = 0; c < rest.size(); ++c) {
            size = std::max(size, std::abs(mixed[c]));
            left = std::max(left, std::abs(rest[c]));
        }
        return left <= least_recovered * size ? x : std::vector<double>();
    }

private:
    double& at(std::size_t i, std::size_t j) { return factor_[i * rows_.rows + j]; }

    RowsView rows_;
    std::vector<double> factor_;
    bool is_unique_ = true;
};

/// Of outputs that are not projected, where keys are not more than columns.
std::vector<double> recovered_weights(const Problem& problem, const TheirArray& outputs,
                                      Candidate& asked) {
    const Plan& plan = problem.plan;
    const std::size_t d = plan.d_v;
    if (plan.kv_len > d || problem.projection[index_of(Tensor::out)] ||
        outputs.shape[1] * outputs.shape[3] != plan.heads * d || outputs.shape[2] != plan.rows)
        return {};
    const bool is_joined = outputs.shape[1] != plan.heads;
    std::vector<double> weights;
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t h = 0; h < plan.heads; ++h) {
            BoundedRows values(plan.kv_len, d);
            for (std::size_t k = 0; k < plan.kv_len; ++k)
                std::ranges::copy(
                    asked.row("present_value", b, h * plan.kv_heads / plan.heads, k).value,
                    values.at(k));
            Unmixing unmixing(values.view());
            for (std::size_t row = 0; row < plan.rows; ++row) {
                const std::size_t first = is_joined ? ((b * plan.rows + row) * plan.heads + h) * d
                                                    : ((b * plan.heads + h) * plan.rows + row) * d;
                const std::vector<double> x = unmixing.solve({outputs.values.data() + first, d});
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
    Candidate unmasked(evaluator, open, false);
    SeenWeights seen;
    double least = 0;
    for (const TheirArray& array : arrays)
        if (array.id == "attention_weights" &&
            array.shape == std::array{plan.batch, plan.heads, plan.rows, plan.kv_len})
            seen.weights = array.values;
    for (const TheirArray& array : arrays) {
        const bool is_output = array.id == "context_vectors" || array.id == "head_outputs";
        if (!is_output || !seen.weights.empty()) continue;
        seen.weights = recovered_weights(problem, array, unmasked);
        least = least_recovered;
    }
    if (seen.weights.empty()) return std::nullopt;
    std::size_t first = 0;
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t h = 0; h < plan.heads; ++h)
            for (std::size_t row = 0; row < plan.rows; ++row, first += plan.kv_len) {
                const std::vector<double> weight =
                    unmasked.row("weights_before_dropout", b, h, row).value;
                const Numbers& mask = unmasked.row("mask", b, h, row);
                double largest = 0, largest_asked = 0;
                for (std::size_t k = 0; k < plan.kv_len; ++k) {
                    if (seen.weights[first + k] == 0) continue;
                    largest = std::max(largest, std::abs(seen.weights[first + k]));
                    largest_asked = std::max(largest_asked, weight[k]);
                }
                for (std::size_t k = 0; k < plan.kv_len; ++k) {
                    const bool attends = std::abs(seen.weights[first + k]) > least * largest;
                    const bool may_underflow =
                        !(weight[k] > std::max(3 * least, least_sure) * largest_asked);
                    seen.keys.push_back(mask.value[k] == 0 || (!attends && may_underflow)
                                            ? SeenKey::unknown
                                        : attends ? SeenKey::attended
                                                  : SeenKey::excluded);
                }
            }
    return seen;
}

}  // namespace attn
