#include "core/base/difference.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace attn {
namespace {

/// Maps numbers to integers in the same order: negative ones count down from zero.
template <class T>
std::int64_t ordinal(T value) {
    using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    const auto bits = std::bit_cast<Integer>(value);
    return bits < 0 ? std::int64_t{std::numeric_limits<Integer>::min()} - bits : bits;
}

std::uint64_t ulp_distance(double a, double b, Dtype dtype) {
    // Both would become the same infinity.
    if (overflows(a, dtype) || overflows(b, dtype))
        return a == b ? 0 : std::numeric_limits<std::uint64_t>::max();
    const auto [x, y] = for_dtype(dtype, [&]<class T>(T) {
        return std::pair(ordinal(static_cast<T>(a)), ordinal(static_cast<T>(b)));
    });
    // Unsigned, since the distance between the two largest numbers does not fit int64.
    return x < y ? static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x)
                 : static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y);
}

bool same_kind(double a, double b, bool equal_nan) {
    if (std::isnan(a) || std::isnan(b)) return equal_nan && std::isnan(a) && std::isnan(b);
    return a == b;
}

std::vector<std::size_t> index_of(std::size_t flat, const Array<double>& array) {
    std::vector<std::size_t> index(array.dimension());
    for (std::size_t i = index.size(); i-- > 0; flat /= array.shape(i))
        index[i] = flat % array.shape(i);
    return index;
}

double error_at(const ComparedArray& array, std::size_t i) {
    return array.rounding_errors == nullptr ? 0 : array.rounding_errors->data()[i];
}

/// (x - y) + error; if the integer error is not 0, rounded once. Knuth's TwoSum gives the rounding
/// error of x - y; for integers below 2^65 it and the errors are integers whose sum is exact.
double add_error(double x, double y, double error) {
    const double difference = x - y;
    if (error == 0) return difference;
    const double subtracted = x - difference;
    return difference + ((x - (difference + subtracted)) + (subtracted - y) + error);
}

}  // namespace

Difference difference(const ComparedArray& a, const ComparedArray& b, const Tolerance& t) {
    Difference d;
    double sum = 0;
    std::size_t finite = 0, worst = 0;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        const double x = a.values.data()[i], y = b.values.data()[i];
        if (!std::isfinite(x) || !std::isfinite(y)) {
            if (same_kind(x, y, t.equal_nan)) continue;
            if (d.nonfinite_mismatches++ == 0) worst = i;
            ++d.outside;
            continue;
        }
        const double difference = std::abs(add_error(x, y, error_at(a, i) - error_at(b, i)));
        const std::uint64_t ulp = ulp_distance(x, y, t.dtype);
        sum += difference;
        ++finite;
        if (difference > d.max_abs && d.nonfinite_mismatches == 0) worst = i;
        d.max_abs = std::max(d.max_abs, difference);
        if (difference != 0) d.max_rel = std::max(d.max_rel, difference / std::abs(y));
        d.max_ulp = std::max(d.max_ulp, ulp);
        const bool excused = t.ulp != 0 && ulp <= t.ulp;
        if (difference > t.atol + t.rtol * std::abs(y) && !excused) ++d.outside;
    }
    d.mean_abs = finite == 0 ? 0 : sum / static_cast<double>(finite);
    d.worst = index_of(worst, a.values);
    return d;
}

}  // namespace attn
