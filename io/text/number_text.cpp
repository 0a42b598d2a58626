#include "io/text/number_text.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "io/text/shortest_float.hpp"

namespace attn::io {
namespace {

template <class... Arguments>
char* write(char* at, Arguments... arguments) {
    return std::to_chars(at, at + max_number_length, arguments...).ptr;
}

template <class... Arguments>
std::string text_of(Arguments... arguments) {
    std::array<char, max_number_length> text;
    return {text.data(), write(text.data(), arguments...)};
}

}  // namespace

char* write_number(char* at, float value, std::optional<int> decimals) {
    return decimals ? write(at, value, std::chars_format::fixed, *decimals)
                    : write_shortest(at, value);
}

char* write_number(char* at, double value, std::optional<int> decimals) {
    return decimals ? write(at, value, std::chars_format::fixed, *decimals) : write(at, value);
}

char* write_number(char* at, std::int64_t value, std::optional<int>) {
    return write(at, value);
}

std::string scientific_text(double value, int decimals) {
    return text_of(value, std::chars_format::scientific, decimals);
}

std::string fixed_text(double value, int decimals) {
    if (std::isnan(value)) return "nan";
    return text_of(value, std::chars_format::fixed, decimals);
}

}  // namespace attn::io
