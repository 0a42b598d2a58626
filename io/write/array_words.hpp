// The words of bits that an array's numbers become in formats for hardware, and what comments say
// about them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/write/report.hpp"

namespace attn::io {

/// The words of one array.
struct WordType {
    int width = 0;                     ///< in bits
    bool is_float = false;             ///< float32 or float64, else integers or the bits of floats
    bool is_bits = false;              ///< of float16 or bfloat16
    std::optional<StoredType> stored;  ///< empty: the array's own type
};

/// Those of each array of the report.
std::vector<WordType> word_types(const Report& report);

/// The axes of the report's array `place`, its type, what its words mean and how many numbers are
/// saturated: " (q_len, d_out): int8, number = word * 0.05; 3 of 12 numbers saturated at ...".
std::string about(const Report& report, std::size_t place);

/// Writes the low `bits` bits in hexadecimal digits, as many as they need, and returns the end.
char* write_hex(char* at, std::int64_t word, int bits);

}  // namespace attn::io
