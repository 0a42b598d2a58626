// Numbers as compact text, for pages of many cells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/plot/heat_map.hpp"

namespace attn::io {

/// The fewest mantissa bits after rounding: two decimal digits.
inline constexpr unsigned min_mantissa_bits = 6;

/// The numbers of a matrix without its blocked cells, row by row. A number is a code of `lengths`,
/// then, if the code is that of a binade, `mantissa_bits` of the mantissa, highest first.
///
/// Codes are canonical Huffman codes: those of one length are counted up in the order of the
/// symbols, shorter ones first, 0 bits long if a symbol does not occur. Symbols are `whole`, then
/// `binades`. Source: RFC 1951, section 3.2.2.
struct PackedNumbers {
    std::vector<double> whole = {};      ///< numbers encoded by their code alone
    std::vector<std::uint32_t> binades;  ///< sign and exponent, the high bits of the type
    std::vector<std::uint8_t> lengths;   ///< 0 to 15
    unsigned mantissa_bits = 0;
    std::string text = {};  ///< as packed_flags
};

/// The size of a map: `fixed + numbers * mantissa_bits` bits.
struct PackingCost {
    double fixed = 0, numbers = 0;
    unsigned mantissa_bits = 0;  ///< for exact numbers: 23 or 52
};

/// Bits as text: 13 of them, highest first, are two digits of base 91, the higher first. Digits are
/// the characters from ! to ~ less ", < and \, which need no escapes in a script element or a JSON
/// string.
std::string packed_flags(const std::vector<std::uint8_t>& flags);

PackingCost packing_cost(const HeatMap& map);

/// Mantissa bits for each map, so that all take at most `max_bytes` of text: all bits if that
/// suffices; otherwise as many for the first map as leave the others `min_mantissa_bits`, then as
/// many for the others as fit. Never fewer than that: then the text may be longer.
std::vector<unsigned> fitting_mantissas(const std::vector<PackingCost>& costs, double max_bytes);

/// Bytes of text.
double packed_bytes(const std::vector<PackingCost>& costs, const std::vector<unsigned>& bits);

/// Rounds to the nearest, ties to even, never to infinity, if `mantissa_bits` are fewer than the
/// type's. Zero, NaN and the numbers of a matrix with few distinct values stay exact.
PackedNumbers packed_numbers(const HeatPanel& panel, bool is_float32, unsigned mantissa_bits);

}  // namespace attn::io
