// Numbers as text; see number_text.hpp.
#include "io/number_text.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace attn::io {
namespace {

// The longest: a float64 of 309 digits before the point and 50 after it.
using Buffer = std::array<char, 512>;

template <class... Arguments>
void append(std::string& out, Arguments... arguments) {
    Buffer buffer;
    const auto [end, error] = std::to_chars(buffer.begin(), buffer.end(), arguments...);
    out.append(buffer.begin(), end);
}

template <class T>
void append_float(std::string& out, T value, std::optional<int> decimals) {
    if (decimals)
        append(out, value, std::chars_format::fixed, *decimals);
    else
        append(out, value);
}

}  // namespace

void append_number(std::string& out, float value, std::optional<int> decimals) {
    append_float(out, value, decimals);
}

void append_number(std::string& out, double value, std::optional<int> decimals) {
    append_float(out, value, decimals);
}

void append_number(std::string& out, std::int64_t value, std::optional<int>) {
    append(out, value);
}

std::string scientific_text(double value, int decimals) {
    std::string text;
    append(text, value, std::chars_format::scientific, decimals);
    return text;
}

std::string fixed_text(double value, int decimals) {
    if (std::isnan(value)) return "nan";
    std::string text;
    append(text, value, std::chars_format::fixed, decimals);
    return text;
}

}  // namespace attn::io
