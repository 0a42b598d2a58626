#include "io/plot/colors.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace attn::io {
namespace {

/// Six hexadecimal digits per colour.
constexpr std::string_view viridis_colors =
    "44015444025645045745055946075a46085c460a5d460b5e470d60470e61471063471164471365481467"
    "48166848176948186a481a6c481b6d481c6e481d6f481f70482071482173482374482475482576482677"
    "482878482979472a7a472c7a472d7b472e7c472f7d46307e46327e46337f463480453581453781453882"
    "443983443a83443b84433d84433e85423f854240864241864142874144874045884046883f47883f4889"
    "3e49893e4a893e4c8a3d4d8a3d4e8a3c4f8a3c508b3b518b3b528b3a538b3a548c39558c39568c38588c"
    "38598c375a8c375b8d365c8d365d8d355e8d355f8d34608d34618d33628d33638d32648e32658e31668e"
    "31678e31688e30698e306a8e2f6b8e2f6c8e2e6d8e2e6e8e2e6f8e2d708e2d718e2c718e2c728e2c738e"
    "2b748e2b758e2a768e2a778e2a788e29798e297a8e297b8e287c8e287d8e277e8e277f8e27808e26818e"
    "26828e26828e25838e25848e25858e24868e24878e23888e23898e238a8d228b8d228c8d228d8d218e8d"
    "218f8d21908d21918c20928c20928c20938c1f948c1f958b1f968b1f978b1f988b1f998a1f9a8a1e9b8a"
    "1e9c891e9d891f9e891f9f881fa0881fa1881fa1871fa28720a38620a48621a58521a68522a78522a884"
    "23a98324aa8325ab8225ac8226ad8127ad8128ae8029af7f2ab07f2cb17e2db27d2eb37c2fb47c31b57b"
    "32b67a34b67935b77937b87838b9773aba763bbb753dbc743fbc7340bd7242be7144bf7046c06f48c16e"
    "4ac16d4cc26c4ec36b50c46a52c56954c56856c66758c7655ac8645cc8635ec96260ca6063cb5f65cb5e"
    "67cc5c69cd5b6ccd5a6ece5870cf5773d05675d05477d1537ad1517cd2507fd34e81d34d84d44b86d549"
    "89d5488bd6468ed64590d74393d74195d84098d83e9bd93c9dd93ba0da39a2da37a5db36a8db34aadc32"
    "addc30b0dd2fb2dd2db5de2bb8de29bade28bddf26c0df25c2df23c5e021c8e020cae11fcde11dd0e11c"
    "d2e21bd5e21ad8e219dae319dde318dfe318e2e418e5e419e7e419eae51aece51befe51cf1e51df4e61e"
    "f6e620f8e621fbe723fde725";
constexpr std::string_view red_blue_colors =
    "0530612166ac4393c392c5ded1e5f0f7f7f7fddbc7f4a582d6604db2182b67001f";

constexpr int digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

Color color_of(std::string_view colors, std::size_t index) {
    const auto part = [&](std::size_t at) {
        return static_cast<std::uint8_t>(16 * digit(colors[6 * index + at]) +
                                         digit(colors[6 * index + at + 1]));
    };
    return {part(0), part(2), part(4)};
}

/// Between the listed colours in proportion; position from 0 to 1.
Color interpolate(std::string_view colors, double position) {
    const std::size_t last = colors.size() / 6 - 1;
    const double at = std::clamp(position, 0.0, 1.0) * static_cast<double>(last);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, last);
    const double part = at - static_cast<double>(below);
    const Color low = color_of(colors, below), high = color_of(colors, above);
    const auto mix = [&](std::uint8_t a, std::uint8_t b) {
        return static_cast<std::uint8_t>(std::lround((1 - part) * a + part * b));
    };
    return {mix(low.red, high.red), mix(low.green, high.green), mix(low.blue, high.blue)};
}

/// Relative luminance, 0 to 1. Source: WCAG 2.1.
double luminance(const Color& color) {
    const auto linear = [](std::uint8_t part) {
        const double x = part / 255.0;
        return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
}

}  // namespace

Color viridis(double position) {
    return interpolate(viridis_colors, position);
}

Color red_blue(double position) {
    return interpolate(red_blue_colors, (position + 1) / 2);
}

std::span<const Color> cell_colors(bool is_diverging) {
    static const auto sequential = [] {
        std::array<Color, 240> colors{};
        for (std::size_t i = 0; i < colors.size(); ++i)
            colors[i] = viridis(static_cast<double>(i) / (colors.size() - 1));
        return colors;
    }();
    static const auto diverging = [] {
        std::array<Color, 239> colors{};
        for (std::size_t i = 0; i < colors.size(); ++i)
            colors[i] = red_blue(2 * static_cast<double>(i) / (colors.size() - 1) - 1);
        return colors;
    }();
    return is_diverging ? std::span<const Color>(diverging) : std::span<const Color>(sequential);
}

Color color_at(double position, bool is_diverging) {
    const std::span<const Color> colors = cell_colors(is_diverging);
    const double part = std::clamp(is_diverging ? (position + 1) / 2 : position, 0.0, 1.0);
    const auto last = static_cast<double>(colors.size() - 1);
    return colors[static_cast<std::size_t>(std::lround(part * last))];
}

Color ink_on(const Color& ground) {
    constexpr double equal_contrast = 0.179;  // with black and with white
    return luminance(ground) > equal_contrast ? Color{0, 0, 0} : Color{255, 255, 255};
}

std::string hex_text(const Color& color) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text = "#";
    for (std::uint8_t part : {color.red, color.green, color.blue}) {
        text += digits[part >> 4];
        text += digits[part & 15];
    }
    return text;
}

}  // namespace attn::io
