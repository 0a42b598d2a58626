// The floating-point types that another program may have computed in.
#pragma once

#include <span>
#include <string_view>

namespace attn {

enum class Precision {
    float64,
    float32,
    tf32,  ///< float32, with factors of products in TF32
    float16,
    bfloat16
};

/// What is known about a type.
struct PrecisionRow {
    Precision precision;
    std::string_view name;
    double unit;   ///< the unit roundoff: half the distance from 1 to the next number
    double least;  ///< the smallest positive number, which is subnormal
    double largest;
    double factor;  ///< relative error of factors of products besides, which may be truncated
    double (*round)(double x);  ///< to nearest, ties to even
};

/// In the order of the enumeration.
std::span<const PrecisionRow> precision_rows();
const PrecisionRow& row_of(Precision precision);

/// The type with the largest unit roundoff that holds every number exactly; of float16 and
/// bfloat16, float16. NaN and infinities fit every type.
Precision narrowest(std::span<const double> numbers);

}  // namespace attn
