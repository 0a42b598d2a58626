#include "io/plot/colors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace attn::io {
namespace {

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
    const auto places = static_cast<int>(digits.size());
    if (is_scientific) {
        if (places > 1) digits.insert(1, ".");
        return sign + digits + "e" + std::to_string(exponent + places - 1);
    }
    if (exponent >= 0) return sign + digits + std::string(static_cast<std::size_t>(exponent), '0');
    if (-exponent >= places) digits.insert(0, static_cast<std::size_t>(1 - exponent - places), '0');
    digits.insert(digits.size() - static_cast<std::size_t>(-exponent), ".");
    return sign + digits;
}

/// Whether plain notation is longer.
bool is_scientific(double full) {
    return full <= 0.001 || full >= 1e5;
}

/// The ends, and the ticks between them that do not overlap on the narrowest bar, of this many
/// characters; at its ends the labels are moved inside.
std::vector<ScaleTick> spaced(const std::vector<ScaleTick>& ticks, double low) {
    constexpr double narrowest = 160.0 / 7;
    const auto begin_of = [&](const ScaleTick& tick) {
        const auto wide = static_cast<double>(tick.text.size());
        const double place = narrowest * (tick.position - low) / (1 - low);
        return std::clamp(place - wide / 2, 0.0, std::max(narrowest - wide, 0.0));
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
std::vector<ScaleTick> on_both_sides(const std::vector<ScaleTick>& above) {
    std::vector<ScaleTick> both;
    both.reserve(2 * above.size() + 1);
    for (auto tick = above.rbegin(); tick != above.rend(); ++tick)
        both.push_back({-tick->position, "-" + tick->text});
    both.push_back({0, "0"});
    both.insert(both.end(), above.begin(), above.end());
    if (spaced(both, -1).size() == both.size()) return both;
    return {both.front(), both[above.size()], both.back()};
}

}  // namespace

Magnitudes::Magnitudes() : counts_(std::size_t{1} << (11 + counted_bits), 0) {}

void Magnitudes::begin_matrix() {
    begins_.push_back(row_peaks_.size());
}

void Magnitudes::add_row(const std::vector<double>& cells, bool is_narrow) {
    const double peak = cells.empty() ? 0 : *std::max_element(cells.begin(), cells.end());
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
        const auto middle = peaks.begin() + std::ssize(peaks) / 2;
        std::nth_element(peaks.begin(), middle, peaks.end());
        full = std::max(full, *middle / 10);
        if (is_diverging) full = std::min(full, 3 * *middle);
    }
    if (full == 0) full = peak_;
    if (full == 0) return 1;
    const double round = value_of(steps_to(full));
    return std::isfinite(round) && round >= full ? round : full;
}

bool Magnitudes::leaves_rows_dark(double full) const {
    for (std::size_t i = 0; i < begins_.size(); ++i) {
        const auto at = [&](std::size_t matrix) {
            const std::size_t end = row_peaks_.size();
            return row_peaks_.begin() +
                   static_cast<std::ptrdiff_t>(matrix < begins_.size() ? begins_[matrix] : end);
        };
        const auto dark =
            std::count_if(at(i), at(i + 1), [&](double peak) { return peak < full / 3; });
        if (3 * dark > at(i + 1) - at(i)) return true;
    }
    return false;
}

std::vector<ScaleTick> even_ticks(double full, bool is_diverging) {
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
    ticks.push_back({1, end});
    if (!is_diverging) return spaced(ticks, 0);
    // At most one tick between 0 and each end, the half of a round number.
    const auto is_half = [](const ScaleTick& tick) {
        return tick.position > 0.3 && tick.position < 0.7;
    };
    const auto inside = std::find_if(ticks.begin(), ticks.end(), is_half);
    std::vector<ScaleTick> above{{1, end}};
    if (is_even)
        above.insert(above.begin(),
                     {0.5, round_text(5 * steps.count * steps.digit, steps.exponent - 1, !plain)});
    else if (inside != ticks.end())
        above.insert(above.begin(), *inside);
    return on_both_sides(above);
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
    return is_diverging ? on_both_sides(ticks) : spaced(ticks, 0);
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
