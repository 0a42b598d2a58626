// How large the errors of a right program in bfloat16 or float16 usually are: the bounds for the
// worst case also admit many wrong programs.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/number_type.hpp"

namespace attn {

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
