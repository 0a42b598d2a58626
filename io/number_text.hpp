// Numbers as text: the shortest decimal that reads back the same, or a fixed count of decimals.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attn::io {

/// Appends a finite number. Without `decimals`: the shortest decimal that reads back as the same
/// value of its own type (0.43 for the float32 nearest 0.43); with it: that many digits after the
/// point, correctly rounded from the exact value.
void append_number(std::string& out, float value, std::optional<int> decimals);
void append_number(std::string& out, double value, std::optional<int> decimals);
void append_number(std::string& out, std::int64_t value, std::optional<int> decimals);

/// Python's '{:.{decimals}e}': at least two digits in the exponent.
std::string scientific_text(double value, int decimals);

/// Python's '{:.{decimals}f}', nan and inf included.
std::string fixed_text(double value, int decimals);

}  // namespace attn::io
