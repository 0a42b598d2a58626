// The rounding errors of arithmetic in one type, and of sums and products in it: bounds, and how
// large the errors of a right program in bfloat16 or float16 usually are, since bounds for the
// worst case also admit many wrong programs.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include "core/base/number_type.hpp"

namespace attn {

/// The rounding error of a sum of n products is bounded by gamma(n) = exp(lambda sqrt(n) u + n u^2
/// / (1 - u)) - 1 times the sum of their sizes, with a probability of at least 1 - 2 exp(-lambda^2
/// (1 - u)^2 / 2): Higham and Mary 2019, "A new approach to probabilistic rounding error analysis",
/// theorem 2.4; n u / (1 - n u) where that is smaller. Where products have both signs the partial
/// sums are smaller, and so are the errors: Higham and Mary 2020, "Sharper probabilistic backward
/// error analysis for basic linear algebra kernels with random data". Errors of factors that are
/// independent add up as the root of their squares.
inline constexpr double lambda = 6;

/// A number with a bound on its error.
struct Bounded {
    double value = 0, error = 0;
};

/// Bounds of the difference of two results, one in float64 and one in the type. Products of float16
/// and bfloat16 are added in float32, as PyTorch, NumPy and the matrix units of processors do,
/// unless the question asks for other `sums`: with sums in the type itself, the bounds of layers
/// would be larger than their results.
class ErrorModel {
public:
    explicit ErrorModel(NumberType precision, NumberType sums = NumberType::float32)
        : row_(&row_of(precision)), unit_(row_->unit + row_of(NumberType::float64).unit),
          sum_unit_(std::min(unit_, row_of(sums).unit)) {}

    double unit() const { return unit_; }
    double least() const { return row_->least; }

    /// Exponentials below this are 0 in many programs: the smaller normal numbers, because the
    /// exponent is limited, and the subnormal ones, because these are slow. Those of float16 are
    /// not.
    double least_power() const {
        if (row_->type == NumberType::float16) return row_->least;
        return row_->least / (2 * row_->unit) * 0x1p26;
    }

    /// Whether it is smaller than float32.
    bool is_coarse() const { return unit_ > fine_unit(); }

    /// The error of a scale relative to it: it is rounded, or its root, which multiplies both
    /// factors, or what divides.
    double of_scale(double x) const {
        const auto relative = [&](double y) { return std::abs(row_->round(y) - y) / y; };
        const double most = std::max({relative(x), 2 * relative(std::sqrt(x)), relative(1 / x),
                                      2 * relative(std::sqrt(1 / x))}) +
                            2 * fine_unit();
        return most <= 2 * unit_ ? most : 2 * unit_;  // also where x is 0 or out of the range
    }

    /// Of angles and of what else programs compute in float32 at least: the positions of tokens are
    /// not exact in the smaller types.
    double fine_unit() const { return std::min(unit_, 0x1p-23); }

    /// The error of a sum of n products, in any order, relative to the sum of their sizes.
    double gamma(std::size_t n) const {
        const double nu = static_cast<double>(n) * sum_unit_;
        return nu < 1 ? std::min(nu / (1 - nu), likely_gamma(n)) : likely_gamma(n);
    }

    /// Of a sum of n products, relative to the sum of their sizes: factors are rounded, too.
    double gamma_of_products(std::size_t n) const { return gamma(n) + 2 * row_->factor; }

    /// Of factors that are truncated, both towards 0, the errors of n products have a part that is
    /// common to all, and one that is independent; see of_sum.
    double of_factors(std::size_t n, double sum, double root) const {
        if (row_->factor == 0) return 0;
        const double spread = std::min(lambda, std::sqrt(2 * static_cast<double>(n)));
        return row_->factor * (std::abs(sum) + spread / std::numbers::sqrt2 * root);
    }

    /// The error of a sum of n products: `root` is at least the root of the sum of their squares,
    /// `size` at least the sum of their sizes. Partial sums in an order that has nothing to do with
    /// the signs are, in the mean square, no larger than those of this.
    double of_sum(std::size_t n, double sum, double root, double size) const {
        const double partial = std::hypot(sum, std::numbers::sqrt2 * root);
        const double likely = likely_gamma(n) * (std::isfinite(partial) ? partial : size);
        return std::min(gamma(n) * size, likely) + of_factors(n, sum, root) +
               static_cast<double>(n) * row_->least;
    }

    /// Of storing x.
    double rounding(double x) const { return unit_ * std::abs(x) + row_->least; }

    /// The error of x, which the type holds with this error before it is stored; infinite where
    /// numbers of that size overflow: those that are nearer to what would follow the largest
    /// number. A number that is infinite or NaN has none.
    double stored(double x, double error) const {
        if (!std::isfinite(x)) return 0;
        return std::abs(x) + error <= row_->largest * (1 + row_->unit / 2) ? error + rounding(x)
                                                                           : HUGE_VAL;
    }

    /// The error of an operand that is rounded to the type.
    double of_operand(double x) const {
        const double rounded = row_->round(x);
        return std::isfinite(x) ? std::abs(x - rounded) : 0;
    }

private:
    double likely_gamma(std::size_t n) const {
        const double terms = static_cast<double>(n);
        return std::expm1(lambda * std::sqrt(terms) * sum_unit_ +
                          terms * sum_unit_ * sum_unit_ / (1 - sum_unit_));
    }

    const NumberTypeRow* row_;
    double unit_;
    double sum_unit_;  ///< of sums of products
};

/// Of n errors that are independent, the sum is within this times the root of the sum of squares:
/// with certainty for few, else with the probability that `lambda` gives (Hoeffding's inequality).
inline double spread_of(std::size_t n) {
    return std::min(lambda, std::sqrt(static_cast<double>(n)));
}

/// The same for errors that are bounded by gamma(n), which has the factor lambda already, with
/// other roundings that are smaller by it.
inline double spread_of_sums(std::size_t n) {
    return std::min(lambda / 3, std::sqrt(static_cast<double>(n)));
}

/// A number that is rounded to a type, with its error from then on: none if all numbers within the
/// error round to the same.
inline Bounded round_within(const NumberTypeRow& to, const Bounded& x) {
    const double rounded = to.round(x.value);
    if (x.error == 0 || !std::isfinite(x.value)) return {rounded, x.error};
    const double low = to.round(x.value - x.error), high = to.round(x.value + x.error);
    return {rounded, std::max(rounded - low, high - rounded)};
}

inline double square(double x) {
    return x * x;
}

/// Half a unit in the last place of x in the type; x must be finite.
inline double half_unit_of_finite(const NumberTypeRow& type, double x) {
    constexpr std::uint64_t exponent_bits = 0x7ff0000000000000U;
    const double power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & exponent_bits);
    return std::max(type.unit * power, type.least / 2);
}

/// The same; 0 if x is 0 or not finite.
inline double half_unit(const NumberTypeRow& type, double x) {
    return x == 0 || !std::isfinite(x) ? 0 : half_unit_of_finite(type, x);
}

inline double square_of_half(const NumberTypeRow& type, double x) {
    return square(half_unit(type, x));
}

inline constexpr double of_float32_sums = 0x1p-20;

/// What a variance has: later ones have what earlier ones have, and cost more. Of arrays other than
/// sums of values the second has all.
enum class NoiseDetail {
    storing,  ///< the rounding of outputs and of their normaliser
    steps,    ///< and of each step before
    all       ///< and what a query's rounding does to all of its keys
};

/// The errors that are expected in one row.
struct Noise {
    std::vector<std::size_t> column;  ///< of each number; of long rows, not all
    std::vector<double> half;         ///< half a unit in the last place of it
    std::vector<double> variance;     ///< of its error; infinite: not known
    double floor = 0;                 ///< of sums in float32

    void add(std::size_t of_column, double of_half, double of_variance) {
        column.push_back(of_column);
        half.push_back(of_half);
        variance.push_back(of_variance);
    }
    void clear() {
        column.clear();
        half.clear();
        variance.clear();
        floor = 0;
    }
};

/// What numbers of keys add up to, in the order of their cells: those of a cell have equal errors,
/// or all have independent ones.
struct CellSums {
    double sum = 0, together = 0, apart = 0;  ///< of a cell; squares by cells; squares of all

    void add(double x) {
        sum += x;
        apart += x * x;
    }
    void end_cell() { together += square(std::exchange(sum, 0)); }
    double larger() const { return std::max(together, apart); }
};

/// A key with a weight, or the sink, whose value is 0, and what moves its weight.
struct NoisyKey {
    std::size_t key;
    std::int64_t cell;  ///< of keys whose scores are equal to rounding
    double p;           ///< the weight
    double weight;      ///< the error of rounding the weight itself
    double score;       ///< the weight's change by the roundings of its score
    double factor = 0;  ///< the square of its derivative by the product of query and key
    double of_query = 0, of_key = 0;  ///< variances from the roundings of these
};

/// What moves the weights of one query.
struct NoisyRow {
    std::vector<NoisyKey> keys;    ///< in the order of their cells
    std::vector<double> of_query;  ///< variances of the query's elements
    double slope_error = 0;        ///< of ALiBi
    bool is_known = true;          ///< false: errors of scores are too large for this estimate

    bool ends_cell(std::size_t i) const {
        return i + 1 == keys.size() || keys[i + 1].cell != keys[i].cell;
    }
};

}  // namespace attn
