// The types of a layer's computation, one row each.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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
static_assert(std::all_of(dtype_rows.begin(), dtype_rows.end(),
                          [](const DtypeRow& row) { return &row == &row_of(row.dtype); }),
              "rows are in the order of their types");

inline constexpr Names<Dtype, dtype_rows.size()> dtype_names = [] {
    Names<Dtype, dtype_rows.size()> names{};
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i].first = dtype_rows[i].dtype;
        names[i].second = dtype_rows[i].name;
    }
    return names;
}();

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

}  // namespace attn
