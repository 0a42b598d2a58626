// Numbers as text: the shortest decimal that reads back as the same number, or a fixed number of
// decimals. And text as a number.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "core/base/number_type.hpp"

namespace attn::io {

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// At least one, and nothing else.
constexpr bool are_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "1 row", "2 rows".
inline std::string count_text(std::size_t count, std::string_view noun) {
    return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

/// Of ASCII.
constexpr bool is_letter(char c) {
    return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/// The most characters of a number: a float64 of 309 digits before the point and up to 200 after
/// it.
inline constexpr std::size_t max_number_length = 512;

/// Writes a finite number and returns its end; max_number_length bytes from `at` on may be
/// overwritten. Without `decimals`: the shortest decimal that reads back as the same value of its
/// own type (0.43 for the float32 nearest 0.43), or of `type`, which has it; with it: that many
/// digits after the point,
/// correctly rounded from the exact value.
char* write_number(char* at, float value, std::optional<int> decimals,
                   NumberType type = NumberType::float32);
char* write_number(char* at, double value, std::optional<int> decimals,
                   NumberType type = NumberType::float64);
char* write_number(char* at, std::int64_t value, std::optional<int> decimals,
                   NumberType type = NumberType::int64);

/// The same as a string.
template <class T>
std::string number_text(T value, std::optional<int> decimals = {}) {
    std::array<char, max_number_length> text;
    return {text.data(), write_number(text.data(), value, decimals)};
}

/// Python's '{:.{decimals}e}': at least two digits in the exponent.
std::string scientific_text(double value, int decimals);

/// Python's '{:.{decimals}f}', nan and inf included.
std::string fixed_text(double value, int decimals);

/// C's "%.{digits}g" of a number that is not NaN.
std::string general_text(double value, int digits = 3);

/// The number that the whole text is, as std::from_chars reads it, or nothing. `base`: that of an
/// integer, if it is not 10.
template <class T, class... Base>
std::optional<T> number_of_text(std::string_view text, Base... base) {
    T number{};
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number, base...);
    return error == std::errc{} && at == end ? std::optional(number) : std::nullopt;
}

/// The most characters that write_shortest writes.
inline constexpr std::size_t max_float_length = 24;

/// Writes the characters that std::to_chars(float) gives, and returns their end: of the decimals
/// that read back as `value` one with the fewest digits, the nearest among these; as 0.43
/// or 4.3e-05, whichever is shorter. `value` is finite; 24 bytes from `at` on are overwritten.
/// For a number of bfloat16 or float16 the decimals are those that read back in that `type`.
char* write_shortest(char* at, float value, NumberType type = NumberType::float32);

}  // namespace attn::io
