#include "io/plot/terminal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace attn::io {
namespace {

/// xterm's palette: 16 colours, a cube of 6 x 6 x 6, 24 greys.
Color palette_color(std::size_t index) {
    constexpr std::array<Color, 16> basic{{{0, 0, 0},
                                           {205, 0, 0},
                                           {0, 205, 0},
                                           {205, 205, 0},
                                           {0, 0, 238},
                                           {205, 0, 205},
                                           {0, 205, 205},
                                           {229, 229, 229},
                                           {127, 127, 127},
                                           {255, 0, 0},
                                           {0, 255, 0},
                                           {255, 255, 0},
                                           {92, 92, 255},
                                           {255, 0, 255},
                                           {0, 255, 255},
                                           {255, 255, 255}}};
    constexpr std::array<std::uint8_t, 6> levels{0, 95, 135, 175, 215, 255};
    if (index < 16) return basic[index];
    if (index < 232) {
        const std::size_t cube = index - 16;
        return {levels[cube / 36], levels[cube / 6 % 6], levels[cube % 6]};
    }
    const auto grey = static_cast<std::uint8_t>(8 + 10 * (index - 232));
    return {grey, grey, grey};
}

/// Some of xterm's first 16: each step is lighter in its palette and most others, without black and
/// white, which are backgrounds.
constexpr std::array<std::size_t, 5> rising{4, 12, 6, 10, 11};
constexpr std::array<std::size_t, 7> blue_to_red{4, 12, 14, 7, 11, 9, 1};

/// Never blank, unlike masked cells.
constexpr std::array<std::string_view, 7> shades{"·", ":", "+", "░", "▒", "▓", "█"};
constexpr std::array<std::string_view, 5> shades_above{"·", "░", "▒", "▓", "█"};
constexpr std::array<std::string_view, 5> shades_below{"·", "-", "=", "#", "@"};

/// Of equal parts from 0 to 1.
template <class T>
const T& part_of(std::span<const T> steps, double share) {
    const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(steps.size());
    return steps[std::min(static_cast<std::size_t>(place), steps.size() - 1)];
}

/// The first one only for values that round to it.
std::string_view nearest_shade(std::span<const std::string_view> steps, double size) {
    const double place = std::clamp(size, 0.0, 1.0) * static_cast<double>(steps.size() - 1);
    return steps[static_cast<std::size_t>(std::lround(place))];
}

std::size_t nearest_color(const Color& color, std::size_t first, std::size_t end) {
    const auto distance = [&](std::size_t index) {
        const Color other = palette_color(index);
        const int red = color.red - other.red, green = color.green - other.green,
                  blue = color.blue - other.blue;
        return red * red + green * green + blue * blue;
    };
    std::size_t best = first;
    for (std::size_t index = first; index < end; ++index)
        if (distance(index) < distance(best)) best = index;
    return best;
}

}  // namespace

std::string color_code(const Color& color, bool ground, ColorDepth depth) {
    const auto number = [](std::size_t value) { return std::to_string(value); };
    switch (depth) {
        case ColorDepth::rgb:
            return (ground ? "48;2;" : "38;2;") + number(color.red) + ";" + number(color.green) +
                   ";" + number(color.blue);
        case ColorDepth::ansi256:
            return (ground ? "48;5;" : "38;5;") + number(nearest_color(color, 16, 256));
        case ColorDepth::ansi16: {
            const std::size_t index = nearest_color(color, 0, 16);
            return number((ground ? 40 : 30) + index % 8 + (index < 8 ? 0 : 60));
        }
        case ColorDepth::none: break;
    }
    return {};
}

Color terminal_color(double position, bool is_diverging, ColorDepth depth) {
    if (depth != ColorDepth::ansi16) return color_at(position, is_diverging);
    const std::span<const std::size_t> steps =
        is_diverging ? std::span<const std::size_t>(blue_to_red) : rising;
    return palette_color(part_of(steps, is_diverging ? (position + 1) / 2 : position));
}

std::string_view shade_at(double position, bool is_diverging) {
    if (!is_diverging) return nearest_shade(shades, position);
    return nearest_shade(position < 0 ? shades_below : shades_above, std::abs(position));
}

}  // namespace attn::io
