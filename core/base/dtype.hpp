// Types of numbers, one row each: those of a layer's computation, and those of other programs and
// files.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include "core/base/names.hpp"

namespace attn {

enum class Dtype { float32, float64 };

struct DtypeRow {
    Dtype dtype;
    std::string_view name;
    std::size_t size;          ///< bytes of a number
    unsigned digits;           ///< decimals that distinguish any two numbers of [-1, 1]
    std::string_view largest;  ///< the largest finite number as its shortest decimal
    double least;              ///< the smallest normal one
    double (*round)(double);   ///< to the nearest number of the type
};

inline constexpr std::array<DtypeRow, 2> dtype_rows{{
    {Dtype::float32, "float32", sizeof(float), 8, "3.4028235e38",
     double{std::numeric_limits<float>::min()},
     [](double value) { return double{static_cast<float>(value)}; }},
    {Dtype::float64, "float64", sizeof(double), 17, "1.7976931348623157e308",
     std::numeric_limits<double>::min(), [](double value) { return value; }},
}};

constexpr const DtypeRow& row_of(Dtype dtype) {
    return dtype_rows[static_cast<std::size_t>(dtype)];
}
static_assert(are_in_order(dtype_rows, &DtypeRow::dtype));

inline constexpr auto dtype_names = names_of_rows(dtype_rows, &DtypeRow::dtype);

/// The type's own name in the table.
template <class T>
inline constexpr Dtype dtype_of = std::is_same_v<T, float> ? Dtype::float32 : Dtype::float64;

/// function(T{0}), T being the type of computation of this dtype.
template <class Function>
decltype(auto) for_dtype(Dtype dtype, const Function& function) {
    return dtype == Dtype::float32 ? function(float{0}) : function(double{0});
}

/// Whether a finite number becomes an infinity in the type.
inline bool overflows(double value, Dtype dtype) {
    return std::isinf(row_of(dtype).round(value));
}

/// "overflows float32; expected at most 3.4028235e38, or dtype float64".
std::string overflow_text(Dtype dtype);

// The floating-point types that programs compute in and files hold, one row each.

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

double rounded_to_float16(double x);
double rounded_to_bfloat16(double x);

inline constexpr std::array<PrecisionRow, 5> precision_rows{
    {{Precision::float64, "float64", 0x1p-53, 0x1p-1074, std::numeric_limits<double>::max(), 0,
      row_of(Dtype::float64).round},
     {Precision::float32, "float32", 0x1p-24, 0x1p-149, std::numeric_limits<float>::max(), 0,
      row_of(Dtype::float32).round},
     {Precision::tf32, "tf32", 0x1p-24, 0x1p-149, std::numeric_limits<float>::max(), 0x1p-10,
      row_of(Dtype::float32).round},
     {Precision::float16, "float16", 0x1p-11, 0x1p-24, 65504, 0, rounded_to_float16},
     {Precision::bfloat16, "bfloat16", 0x1p-8, 0x1p-133, 0x1.fep127, 0, rounded_to_bfloat16}}};

constexpr const PrecisionRow& row_of(Precision precision) {
    return precision_rows[static_cast<std::size_t>(precision)];
}
static_assert(are_in_order(precision_rows, &PrecisionRow::precision));

inline constexpr auto precision_names = names_of_rows(precision_rows, &PrecisionRow::precision);

/// Whether the type has all of these numbers; NaN and infinities fit every type.
bool holds_all(const PrecisionRow& type, std::span<const double> numbers);

/// The distance of a and b in units in the last place, after both are rounded to the type; +0 and
/// -0 are one number. If one becomes an infinity or is NaN: 0 if a == b, else the largest integer.
std::uint64_t ulps_between(double a, double b, Precision precision);

}  // namespace attn
