// Numbers as compressed planes in text, for pages of many cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/plot/heat_map.hpp"

namespace attn::io {

// Base64, for data embedded in pictures and pages.

/// Source: RFC 4648, section 4.
std::string base64(std::string_view bytes);

// Numbers as compressed planes in text, for pages of many cells.

/// The fewest mantissa bits after rounding: two decimal digits.
inline constexpr unsigned min_mantissa_bits = 6;

/// The estimated size of a map's text: `high + numbers * mantissa_bits / 6` characters.
struct PlaneCost {
    double high = 0, numbers = 0;
    unsigned mantissa_bits = 0;  ///< for exact numbers: 23 or 52
};

PlaneCost plane_cost(const HeatMap& map);

/// Mantissa bits for each map, so that all take about `max_bytes` of text: all bits if that
/// suffices; otherwise as many for the first map as leave the others `min_mantissa_bits`, then as
/// many for the others as fit. Never fewer than that: then the text may be longer.
std::vector<unsigned> fitting_mantissas(const std::vector<PlaneCost>& costs, double max_bytes);

/// Bytes of text.
double plane_bytes(const std::vector<PlaneCost>& costs, const std::vector<unsigned>& bits);

/// The numbers of a matrix without its masked cells, row by row: two zlib streams in base64, a
/// blank between them. The first holds the sign and exponent of each number, which are the high
/// bits of the type: the low byte of each, then the high byte of each. The second holds
/// `mantissa_bits` of each mantissa, highest first, without gaps.
///
/// Numbers are rounded to the nearest, ties to even, never to infinity, if those bits are fewer
/// than the type's. All NaNs are the same.
std::string number_planes(const HeatPanel& panel, bool is_float32, unsigned mantissa_bits);

/// One bit per flag, the first one highest, as a zlib stream in base64.
std::string packed_flags(const std::vector<std::uint8_t>& flags);

}  // namespace attn::io
