#include "io/text/display_width.hpp"

#include <array>

#include "io/text/code_ranges.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

constexpr std::array<CodeRange, 14> zero_width{{{0x0300, 0x036f},
                                                {0x0483, 0x0489},
                                                {0x0591, 0x05bd},
                                                {0x0610, 0x061a},
                                                {0x064b, 0x065f},
                                                {0x0900, 0x0902},
                                                {0x093c, 0x093c},
                                                {0x1ab0, 0x1aff},
                                                {0x1dc0, 0x1dff},
                                                {0x200b, 0x200f},
                                                {0x2060, 0x2064},
                                                {0x20d0, 0x20f0},
                                                {0xfe00, 0xfe0f},
                                                {0xfe20, 0xfe2f}}};

constexpr std::array<CodeRange, 10> double_width{{{0x1100, 0x115f},
                                                  {0x2e80, 0x303e},
                                                  {0x3041, 0xa4cf},
                                                  {0xa960, 0xa97c},
                                                  {0xac00, 0xd7a3},
                                                  {0xf900, 0xfaff},
                                                  {0xfe30, 0xfe6f},
                                                  {0xff00, 0xff60},
                                                  {0x1f300, 0x1faff},
                                                  {0x20000, 0x3fffd}}};

}  // namespace

std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    while (!text.empty()) {
        const char32_t c = take_character(text);
        width += contains(zero_width, c) ? 0u : contains(double_width, c) ? 2u : 1u;
    }
    return width;
}

}  // namespace attn::io
