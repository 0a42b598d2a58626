// Debian has no C++ library for progress lines.
#include "cli/batch/records.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "io/file/screen.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

/// 1234567 as "1,234,567".
std::string grouped(double number) {
    std::string text = std::to_string(std::llround(number));
    for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
    return text;
}

/// "0:01:05".
std::string clock_text(double seconds) {
    const auto whole = std::llround(seconds);
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
    return text.data();
}

}  // namespace

std::string progress_text(std::uint64_t records, double seconds, std::optional<double> part,
                          std::size_t columns) {
    const double rate = seconds > 0 ? static_cast<double>(records) / seconds : 0;
    std::string text = grouped(static_cast<double>(records)) + " records  " + grouped(rate) + "/s";
    if (!part) return text.substr(0, columns);
    std::array<char, 16> percent{};
    std::snprintf(percent.data(), percent.size(), "%3.0f %%  ", 100 * *part);
    text.insert(0, percent.data());
    constexpr double longest = 1e6;  // seconds; early estimates may be far off
    const double left = *part > 0 ? seconds * (1 - *part) / *part : longest;
    if (left < longest) text += "  " + clock_text(left) + " left";
    constexpr std::size_t narrowest = 10, frame = 4;  // brackets and blanks
    if (text.size() + narrowest + frame > columns) return text.substr(0, columns);
    const std::size_t width = std::min<std::size_t>(columns - text.size() - frame, 40);
    const auto filled = static_cast<std::size_t>(*part * static_cast<double>(width));
    return io::progress_bar(filled, width) + " " + text;
}

void Progress::show(std::uint64_t records) {
    line_.show([&] {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
        const double known = part_;
        const std::optional<double> part = known == unknown ? std::nullopt : std::optional(known);
        return progress_text(records, passed.count(), part, io::screen_columns(STDERR_FILENO) - 1);
    });
}

void report(const std::string& text) {
    std::fprintf(stderr, "attn: %s\n", io::one_line(text).c_str());
}

}  // namespace attn::cli
