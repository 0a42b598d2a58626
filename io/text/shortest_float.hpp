// The shortest decimal of a float32 number.
#pragma once

#include <cstddef>

namespace attn::io {

/// The most characters of a number.
inline constexpr std::size_t max_float_length = 24;

/// Writes the characters that std::to_chars(float) gives, and returns their end: of the decimals
/// that read back as `value` one with the fewest digits, the nearest among these; as 0.43
/// or 4.3e-05, whichever is shorter. `value` is finite; 24 bytes from `at` on are overwritten.
char* write_shortest(char* at, float value);

}  // namespace attn::io
