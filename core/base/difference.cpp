#include "core/base/difference.hpp"

namespace attn {
namespace {

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
    double sum = 0, scaled_sum = 0;
    constexpr double scale = 0x1p-64;  // for sums beyond float64's range
    std::size_t finite = 0, worst = 0;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        const double x = a.values.data()[i], y = b.values.data()[i];
        if (!std::isfinite(x) || !std::isfinite(y)) {
            if (x == y || (t.equal_nan && std::isnan(x) && std::isnan(y))) continue;
            if (d.nonfinite_mismatches++ == 0) worst = i;
            ++d.outside;
            continue;
        }
        const double difference = std::abs(add_error(x, y, error_at(a, i) - error_at(b, i)));
        const std::uint64_t ulp = x == y ? 0 : ulps_between(x, y, t.type);
        sum += difference;
        scaled_sum += scale * difference;
        ++finite;
        if (difference > d.max_abs && d.nonfinite_mismatches == 0) worst = i;
        d.max_abs = std::max(d.max_abs, difference);
        if (difference != 0) d.max_rel = std::max(d.max_rel, difference / std::abs(y));
        d.max_ulp = std::max(d.max_ulp, ulp);
        const bool excused = t.ulp && ulp <= *t.ulp;
        if (difference > t.atol + t.rtol * std::abs(y) && !excused) ++d.outside;
    }
    const auto count = static_cast<double>(finite);
    d.mean_abs = finite == 0 ? 0 : std::isfinite(sum) ? sum / count : scaled_sum / count / scale;
    d.worst = index_of(worst, a.values.shape());
    return d;
}

}  // namespace attn
