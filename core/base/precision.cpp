#include "core/base/precision.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/low_precision.hpp"

namespace attn {
namespace {

bool holds_all(const PrecisionRow& row, std::span<const double> numbers) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](double x) { return std::isnan(x) || row.round(x) == x; });
}

}  // namespace

double rounded_to_float64(double x) {
    return x;
}

double rounded_to_float32(double x) {
    return static_cast<double>(static_cast<float>(x));
}

double rounded_to_float16(double x) {
    return static_cast<double>(float_of_half(half_of_double(x)));
}

double rounded_to_bfloat16(double x) {
    return static_cast<double>(float_of_bfloat16(bfloat16_of_double(x)));
}

Precision narrowest(std::span<const double> numbers) {
    for (Precision precision : {Precision::float16, Precision::bfloat16, Precision::float32})
        if (holds_all(row_of(precision), numbers)) return precision;
    return Precision::float64;
}

}  // namespace attn
