#include "core/check/precision.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/low_precision.hpp"

namespace attn {
namespace {

double round_float64(double x) {
    return x;
}

double round_float32(double x) {
    return static_cast<double>(static_cast<float>(x));
}

double round_float16(double x) {
    return static_cast<double>(float_of_half(half_of_double(x)));
}

double round_bfloat16(double x) {
    return static_cast<double>(float_of_bfloat16(bfloat16_of_double(x)));
}

constexpr PrecisionRow all_precisions[] = {
    {Precision::float64, "float64", 0x1p-53, 0x1p-1074, std::numeric_limits<double>::max(), 0,
     round_float64},
    {Precision::float32, "float32", 0x1p-24, 0x1p-149, std::numeric_limits<float>::max(), 0,
     round_float32},
    {Precision::tf32, "tf32", 0x1p-24, 0x1p-149, std::numeric_limits<float>::max(), 0x1p-10,
     round_float32},
    {Precision::float16, "float16", 0x1p-11, 0x1p-24, 65504, 0, round_float16},
    {Precision::bfloat16, "bfloat16", 0x1p-8, 0x1p-133, 0x1.fep127, 0, round_bfloat16}};

bool holds_all(const PrecisionRow& row, std::span<const double> numbers) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](double x) { return std::isnan(x) || row.round(x) == x; });
}

}  // namespace

std::span<const PrecisionRow> precision_rows() {
    return all_precisions;
}

const PrecisionRow& row_of(Precision precision) {
    return all_precisions[static_cast<std::size_t>(precision)];
}

Precision narrowest(std::span<const double> numbers) {
    for (Precision precision : {Precision::float16, Precision::bfloat16, Precision::float32})
        if (holds_all(row_of(precision), numbers)) return precision;
    return Precision::float64;
}

}  // namespace attn
