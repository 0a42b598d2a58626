#include "io/plot/colors.hpp"

#include "io/read/number_array.hpp"
#include "io/text/number_text.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

namespace attn::io {

/// viridis.txt: from dark to yellow. Source: van der Walt and Smith, 2015 (CC0).
extern const std::string_view viridis_colors;

namespace {

/// From blue by white to red. Source: ColorBrewer's RdBu.
constexpr std::string_view red_blue_colors =
    "053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f ";
/// The length of a colour: six hexadecimal digits and the character that ends them.
constexpr std::size_t text_size = 7;

constexpr int digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

/// Between the listed colours in proportion; position from 0 to 1.
Color interpolate(std::string_view colors, double position) {
    const std::size_t last = colors.size() / text_size - 1;
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

std::vector<Color> steps_of(std::string_view colors, std::size_t count) {
    std::vector<Color> steps;
    for (std::size_t i = 0; i < count; ++i)
        steps.push_back(
            interpolate(colors, static_cast<double>(i) / static_cast<double>(count - 1)));
    return steps;
}

/// Relative luminance, 0 to 1. Source: WCAG 2.1.
double luminance(const Color& color) {
    const auto linear = [](std::uint8_t part) {
        const double x = part / 255.0;
        return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
}

/// Magnitudes are counted by their exponent and this many bits of the mantissa: to 2 %.
constexpr int counted_bits = 6, dropped_bits = 52 - counted_bits;

std::size_t bin_of(double magnitude) {
    return static_cast<std::size_t>(std::bit_cast<std::uint64_t>(magnitude) >> dropped_bits);
}

/// The largest magnitude of a bin.
double end_of_bin(std::size_t bin) {
    const std::uint64_t next = (static_cast<std::uint64_t>(bin) + 1) << dropped_bits;
    return std::bit_cast<double>(next - 1);
}

/// count * digit * 10^exponent, a round number.
struct Steps {
    int count, digit, exponent;
};

double power_in_double(int exponent) {
    return std::pow(10.0, exponent);
}

/// Rounded once.
double value_of(const Steps& steps) {
    const double whole = steps.count * steps.digit;
    return steps.exponent < 0 ? whole / power_in_double(-steps.exponent)
                              : whole * power_in_double(steps.exponent);
}

/// The value divided by 10^exponent; both may be tiny.
double times(double value, int exponent) {
    constexpr int far = 150;
    return exponent < -far ? value * power_in_double(far) / power_in_double(exponent + far)
                           : value / power_in_double(exponent);
}

/// The least even division into 3 to 5 steps of 1, 2 or 5 that reaches `full`.
Steps steps_to(double full) {
    const int exponent = static_cast<int>(std::floor(std::log10(full)));
    Steps best{0, 0, 0};
    double least = std::numeric_limits<double>::infinity();
    for (int power : {exponent - 1, exponent})
        for (int digit : {1, 2, 5})
            for (int count : {3, 4, 5}) {
                const int whole = count * digit * (power == exponent ? 10 : 1);
                constexpr double rounding = 1e-9;
                if (whole < times(full, exponent - 1) * (1 - rounding) || whole >= least) continue;
                least = whole;
                best = {count, digit, power};
            }
    return best;
}

/// number * 10^exponent.
std::string round_text(int number, int exponent, bool is_scientific) {
    if (number == 0) return "0";
    std::string digits = std::to_string(std::abs(number));
    while (digits.size() > 1 && digits.back() == '0') {
        digits.pop_back();
        ++exponent;
    }
    const std::string sign = number < 0 ? "-" : "";
    const auto length = static_cast<int>(digits.size());
    if (is_scientific) {
        if (length > 1) digits.insert(1, ".");
        return sign + digits + "e" + std::to_string(exponent + length - 1);
    }
    if (exponent >= 0) return sign + digits + std::string(static_cast<std::size_t>(exponent), '0');
    if (-exponent >= length) digits.insert(0, static_cast<std::size_t>(1 - exponent - length), '0');
    digits.insert(digits.size() - static_cast<std::size_t>(-exponent), ".");
    return sign + digits;
}

/// Whether plain notation is longer.
bool is_scientific(double full) {
    return full <= 0.001 || full >= 1e5;
}

constexpr const char* and_more = " and more";

/// The ends, and the ticks between them that do not overlap on the narrowest bar, of this many
/// characters; at its ends the labels are moved inside.
std::vector<ScaleTick> spaced(const std::vector<ScaleTick>& ticks, double low) {
    constexpr double narrowest = 304.0 / 7;
    const auto begin_of = [&](const ScaleTick& tick) {
        const auto wide = static_cast<double>(tick.text.size());
        const double middle = narrowest * (tick.position - low) / (1 - low);
        return std::clamp(middle - wide / 2, 0.0, std::max(narrowest - wide, 0.0));
    };
    const auto end_of = [&](const ScaleTick& tick) {
        return begin_of(tick) + static_cast<double>(tick.text.size());
    };
    constexpr double least = 0.3;
    std::vector<ScaleTick> kept{ticks.front()};
    for (std::size_t i = 1; i + 1 < ticks.size(); ++i)
        if (begin_of(ticks[i]) >= end_of(kept.back()) + least &&
            end_of(ticks[i]) + least <= begin_of(ticks.back()))
            kept.push_back(ticks[i]);
    kept.push_back(ticks.back());
    return kept;
}

/// Ticks above 0 on both sides of it; if some overlap, only the ends and 0.
std::vector<ScaleTick> on_both_sides(const std::vector<ScaleTick>& above, const Beyond& beyond) {
    std::vector<ScaleTick> both;
    both.reserve(2 * above.size() + 1);
    for (auto tick = above.rbegin(); tick != above.rend(); ++tick)
        both.push_back({-tick->position, "-" + tick->text});
    both.push_back({0, "0"});
    both.insert(both.end(), above.begin(), above.end());
    if (beyond.below) both.front().text += " and less";
    if (beyond.above) both.back().text += and_more;
    if (spaced(both, -1).size() == both.size()) return both;
    return {both.front(), both[above.size()], both.back()};
}

/// The value of even ticks that is next above, if it can be represented.
double round_above(double full) {
    const double round = value_of(steps_to(full));
    return std::isfinite(round) && round >= full ? round : full;
}

/// The value that one in `parts` is below.
double part_below(std::vector<double>& values, std::ptrdiff_t parts) {
    const auto nth = values.begin() + std::ssize(values) / parts;
    std::nth_element(values.begin(), nth, values.end());
    return *nth;
}

}  // namespace

Color color_of(std::string_view colors, std::size_t index) {
    const auto part = [&](std::size_t at) {
        return static_cast<std::uint8_t>(16 * digit(colors[text_size * index + at]) +
                                         digit(colors[text_size * index + at + 1]));
    };
    return {part(0), part(2), part(4)};
}

std::span<const Color> cell_colors(bool is_diverging) {
    static const auto sequential = steps_of(viridis_colors, 240),
                      diverging = steps_of(red_blue_colors, 239);
    return is_diverging ? diverging : sequential;
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

std::optional<ColorScale> color_scale_of(std::string_view text) {
    for (const auto& [scale, name] : color_scale_names)
        if (text == name) return scale;
    const ParsedNumber number = parse_loose_number(text);
    const bool is_one = !text.empty() && number.length == text.size() && number.value > 0;
    if (!is_one || !std::isfinite(number.value)) return {};
    return ColorScale::up_to(number.value);
}

std::string text_of(const ColorScale& scale) {
    if (scale.kind == ColorScale::given) return number_text(scale.full);
    return std::string(attn::name_of(color_scale_names, scale));
}

Magnitudes::Magnitudes() : counts_(std::size_t{1} << (11 + counted_bits), 0) {}

void Magnitudes::add_row(const std::vector<double>& cells, bool is_narrow) {
    const double peak = cells.empty() ? 0 : *std::ranges::max_element(cells);
    peak_ = std::max(peak_, peak);
    if (cells.size() < 2 && !is_narrow) return;
    for (double cell : cells) ++counts_[bin_of(cell)];
    cells_ += cells.size();
    if (peak > 0) row_peaks_.push_back(peak);
}

double Magnitudes::robust(bool is_diverging) const {
    double full = peak_;
    std::size_t above = 2 * cells_ / 100;
    if (cells_ > 0)
        for (std::size_t bin = counts_.size(); bin-- > 0;) {
            if (counts_[bin] > above) {
                full = std::min(end_of_bin(bin), full);
                break;
            }
            above -= counts_[bin];
        }
    if (!row_peaks_.empty()) {
        std::vector<double> peaks = row_peaks_;
        const double middle = part_below(peaks, 2);
        full = std::max(full, middle / 10);
        if (is_diverging) full = std::min(full, 3 * middle);
    }
    if (full == 0) full = peak_;
    return full == 0 ? 1 : round_above(full);
}

double Magnitudes::shared() const {
    std::vector<double> medians;  // of each matrix's rows
    for (std::size_t i = 0; i < begins_.size(); ++i) {
        const std::size_t end = i + 1 < begins_.size() ? begins_[i + 1] : row_peaks_.size();
        std::vector<double> peaks(row_peaks_.begin() + static_cast<std::ptrdiff_t>(begins_[i]),
                                  row_peaks_.begin() + static_cast<std::ptrdiff_t>(end));
        if (!peaks.empty()) medians.push_back(part_below(peaks, 2));
    }
    const double full = robust(false);
    if (medians.empty()) return full;
    constexpr double reaches_one = 0.5, visible = 0.2;  // relative to full colour
    const double pale = part_below(medians, 10);
    if (full >= reaches_one && full <= 1 && pale >= visible) return 1;
    return std::min(full, round_above(pale / visible / 2));
}

std::vector<ScaleTick> even_ticks(double full, bool is_diverging, const Beyond& beyond) {
    const Steps steps = steps_to(full);
    const bool plain = !is_scientific(full);
    const auto text_at = [&](int step) {
        return round_text(step * steps.digit, steps.exponent, !plain);
    };
    const double whole = times(full, steps.exponent) / steps.digit;
    const bool is_even = std::abs(whole - steps.count) < 1e-6;
    const std::string end = is_even ? text_at(steps.count) : rounded_text(full);
    std::vector<ScaleTick> ticks{{0, "0"}};
    for (int step = 1; step < steps.count; ++step)
        if (step < whole) ticks.push_back({step / whole, text_at(step)});
    ticks.push_back({1, end + (beyond.above && !is_diverging ? and_more : "")});
    if (!is_diverging) return spaced(ticks, 0);
    // At most one tick between 0 and each end, the half of a round number.
    const auto is_half = [](const ScaleTick& tick) {
        return tick.position > 0.3 && tick.position < 0.7;
    };
    const auto inside = std::ranges::find_if(ticks, is_half);
    std::vector<ScaleTick> above{{1, end}};
    if (is_even)
        above.insert(above.begin(),
                     {0.5, round_text(5 * steps.count * steps.digit, steps.exponent - 1, !plain)});
    else if (inside != ticks.end())
        above.insert(above.begin(), *inside);
    return on_both_sides(above, beyond);
}

std::vector<ScaleTick> log_ticks(double full, bool is_diverging) {
    const auto top = static_cast<int>(std::floor(std::log10(full) + 1e-9));
    std::vector<ScaleTick> ticks;
    for (int exponent = top - (is_diverging ? 2 : 4); exponent <= top;
         exponent += is_diverging ? 2 : 1) {
        const double position = 1 - std::log10(times(full, exponent)) / std::log10(log_range);
        if (position < -1e-9) continue;
        const bool plain = exponent >= -2 && exponent < 4;
        ticks.push_back({std::clamp(position, 0.0, 1.0), round_text(1, exponent, !plain)});
    }
    return is_diverging ? on_both_sides(ticks, {}) : spaced(ticks, 0);
}

std::string rounded_text(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    std::string short_text = text.data();
    const std::size_t exponent = short_text.find('e');
    if (exponent == std::string::npos) return short_text;
    const bool is_negative = short_text[exponent + 1] == '-';
    const std::size_t digits = short_text.find_first_not_of('0', exponent + 2);
    return short_text.substr(0, exponent) + (is_negative ? "e-" : "e") + short_text.substr(digits);
}

}  // namespace attn::io
