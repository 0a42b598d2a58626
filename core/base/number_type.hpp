// Types of numbers, one row each: those of a layer's computation, those of other programs, and
// those of files.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

#include "core/base/names.hpp"

namespace attn {

/// Booleans, integers, floating-point types from the finest to the coarsest, fixed point. The names
/// of 8 bits are those of OCP and ONNX: e4m3 has no infinities, e8m0 holds powers of two.
enum class NumberType {
    boolean,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float64,
    float32,
    tf32,  ///< float32, with factors of products in TF32
    float16,
    bfloat16,
    float8_e4m3,
    float8_e5m2,
    float8_e8m0,
    fixed  ///< two's complement of a given number of bits, some of which follow the point
};

/// What attn does with a type.
namespace use {
inline constexpr unsigned computes = 1;  ///< a `--dtype`
inline constexpr unsigned judges = 2;    ///< a `check --type`
inline constexpr unsigned stores = 4;    ///< a `--store`
/// A `--dtype` that keys, values and parameters are quantised to; the arithmetic is in float32.
inline constexpr unsigned quantises = 8;
}  // namespace use

/// What is known about a type. The unit, least, largest and round are those of floating-point types
/// that attn rounds to.
struct NumberTypeRow {
    NumberType type;
    std::string_view name;         ///< PyTorch's, and NumPy's if it has a descr
    std::string_view descr;        ///< NumPy's, without the byte order; V2 is that of ml_dtypes
    std::string_view safetensors;  ///< its name there, and in GGUF
    std::size_t size;              ///< bytes of a number; 0: by its parameters
    unsigned uses = 0;             ///< of `use`
    unsigned digits = 0;  ///< decimals that distinguish any two numbers of [-1, 1]; of a `--dtype`
    std::string_view largest_text{};  ///< the largest finite number as its shortest decimal
    double unit = 0;   ///< the unit roundoff: half the distance from 1 to the next number
    double least = 0;  ///< the smallest positive number, which is subnormal
    double largest = 0;
    double factor =
        0;  ///< of tf32: the relative error of a product's factors, which hardware may truncate
    double (*round)(double x) = nullptr;  ///< to nearest, ties to even

    /// The smallest normal number.
    constexpr double least_normal() const { return least / (2 * unit); }
};

double rounded_to_float16(double x);
double rounded_to_bfloat16(double x);
double rounded_to_e4m3(double x);
double rounded_to_e5m2(double x);
inline double rounded_to_float32(double x) {
    return double{static_cast<float>(x)};
}

inline constexpr std::array<NumberTypeRow, 18> number_types{
    {{NumberType::boolean, "bool", "b1", "BOOL", 1},
     {NumberType::int8, "int8", "i1", "I8", 1, use::stores},
     {NumberType::int16, "int16", "i2", "I16", 2},
     {NumberType::int32, "int32", "i4", "I32", 4},
     {NumberType::int64, "int64", "i8", "I64", 8},
     {NumberType::uint8, "uint8", "u1", "U8", 1},
     {NumberType::uint16, "uint16", "u2", "U16", 2},
     {NumberType::uint32, "uint32", "u4", "U32", 4},
     {NumberType::uint64, "uint64", "u8", "U64", 8},
     {NumberType::float64, "float64", "f8", "F64", 8, use::computes | use::judges, 17,
      "1.7976931348623157e308", 0x1p-53, 0x1p-1074, std::numeric_limits<double>::max(), 0,
      [](double x) { return x; }},
     {NumberType::float32, "float32", "f4", "F32", 4, use::computes | use::judges, 8,
      "3.4028235e38", 0x1p-24, 0x1p-149, std::numeric_limits<float>::max(), 0, rounded_to_float32},
     {NumberType::tf32, "tf32", "", "", 4, use::judges, 0, "", 0x1p-24, 0x1p-149,
      std::numeric_limits<float>::max(), 0x1p-10, rounded_to_float32},
     {NumberType::float16, "float16", "f2", "F16", 2, use::computes | use::judges | use::stores, 4,
      "65504", 0x1p-11, 0x1p-24, 65504, 0, rounded_to_float16},
     {NumberType::bfloat16, "bfloat16", "V2", "BF16", 2, use::computes | use::judges | use::stores,
      3, "3.3895314e38", 0x1p-8, 0x1p-133, 0x1.fep127, 0, rounded_to_bfloat16},
     {NumberType::float8_e4m3, "float8_e4m3fn", "", "F8_E4M3", 1, use::stores | use::quantises, 0,
      "448", 0x1p-4, 0x1p-9, 448, 0, rounded_to_e4m3},
     {NumberType::float8_e5m2, "float8_e5m2", "", "F8_E5M2", 1, use::stores | use::quantises, 0,
      "57344", 0x1p-3, 0x1p-16, 57344, 0, rounded_to_e5m2},
     {NumberType::float8_e8m0, "float8_e8m0fnu", "", "F8_E8M0", 1},
     {NumberType::fixed, "fixed", "", "", 0, use::stores}}};

constexpr const NumberTypeRow& row_of(NumberType type) {
    return number_types[static_cast<std::size_t>(type)];
}
static_assert(are_in_order(number_types, &NumberTypeRow::type));

constexpr bool is_float(NumberType type) {
    return type >= NumberType::float64 && type <= NumberType::float8_e8m0;
}

template <std::same_as<NumberType>... Types>
constexpr Names<NumberType, sizeof...(Types)> names_of(Types... types) {
    return {{{types, row_of(types).name}...}};
}

/// The types of a use, in the order of the table.
template <unsigned flag>
constexpr auto types_for() {
    constexpr auto is_for = [](const NumberTypeRow& row) { return (row.uses & flag) != 0; };
    constexpr auto count = std::ranges::count_if(number_types, is_for);
    Names<NumberType, static_cast<std::size_t>(count)> names{};
    auto* to = names.begin();
    for (const NumberTypeRow& row : number_types)
        if (is_for(row)) *to++ = {row.type, row.name};
    return names;
}

/// In help's order.
inline constexpr auto judged_types = types_for<use::judges>();
inline constexpr auto stored_types = types_for<use::stores>();
/// The first is the default.
inline constexpr auto dtype_names =
    names_of(NumberType::float32, NumberType::float64, NumberType::bfloat16, NumberType::float16,
             NumberType::float8_e4m3, NumberType::float8_e5m2);
static_assert(types_for<use::computes | use::quantises>().size() == dtype_names.size());

/// The type of C++ numbers in memory.
template <class T>
requires std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int64_t>
inline constexpr NumberType dtype_of = std::same_as<T, float>    ? NumberType::float32
                                       : std::same_as<T, double> ? NumberType::float64
                                                                 : NumberType::int64;

inline constexpr auto rounding_names =
    names_of(NumberType::float32, NumberType::bfloat16, NumberType::float16);

/// Whether the dtype is computed in float32, and each named array is then rounded to it.
constexpr bool is_rounded(NumberType dtype) {
    return dtype == NumberType::bfloat16 || dtype == NumberType::float16;
}

/// The type of the arithmetic, as numbers in memory have it.
constexpr NumberType arithmetic_of(NumberType dtype) {
    return is_rounded(dtype) ? NumberType::float32 : dtype;
}

/// The type of results.
constexpr NumberType result_type(NumberType dtype) {
    return (row_of(dtype).uses & use::quantises) != 0 ? NumberType::float32 : dtype;
}

/// A number in the dtype; of one that is not rounded, the number itself.
float rounded(float x, NumberType dtype);
/// By way of float32, as PyTorch converts.
double rounded(double x, NumberType dtype);

/// The same for each number. Returns the index of the first finite one that becomes an infinity, or
/// their count.
template <class T>
std::size_t round_all(std::span<T> numbers, NumberType dtype);

/// function(T{0}), T being the type of computation of this dtype.
template <class Function>
decltype(auto) for_dtype(NumberType dtype, const Function& function) {
    if (arithmetic_of(dtype) == NumberType::float32) return function(float{0});
    if (dtype == NumberType::float64) return function(double{0});
    throw std::logic_error("no computation in " + std::string(row_of(dtype).name));
}

/// Whether a finite number becomes an infinity in the type, or NaN.
inline bool overflows(double value, NumberType dtype) {
    return !std::isfinite(row_of(dtype).round(value));
}

/// "overflows float32; expected at most 3.4028235e38, or dtype float64".
std::string overflow_text(NumberType dtype);

/// Whether the type has all of these numbers; NaN and infinities fit every type.
bool holds_all(const NumberTypeRow& type, std::span<const double> numbers);

/// The distance of a and b in units in the last place, after both are rounded to the type; +0 and
/// -0 are one number. If one becomes an infinity or is NaN: 0 if a == b, else the largest integer.
std::uint64_t ulps_between(double a, double b, NumberType type);

}  // namespace attn
