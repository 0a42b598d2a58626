#include "core/model/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace attn {
namespace {

struct Tap {
    std::size_t from = 0;
    double weight = 0;
};

/// Keys' cubic convolution, of a distance below 2.
double cubic(double x, double a) {
    x = std::abs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/// What the elements of a longer or shorter axis are made of.
std::vector<std::vector<Tap>> taps_of(std::size_t length, std::size_t new_length, Resize kind) {
    const bool is_cubic = kind == Resize::bicubic || kind == Resize::bicubic_smooth;
    const double scale = static_cast<double>(length) / static_cast<double>(new_length);
    const auto last = static_cast<std::int64_t>(length) - 1;
    std::vector<std::vector<Tap>> all(new_length);
    for (std::size_t i = 0; i < new_length; ++i) {
        const double centre = scale * (static_cast<double>(i) + 0.5);
        std::vector<Tap>& taps = all[i];
        if (kind == Resize::bilinear || kind == Resize::bicubic) {
            const double at = is_cubic ? centre - 0.5 : std::max(0.0, centre - 0.5);
            const double first = std::floor(at);
            for (int j = is_cubic ? -1 : 0; j <= (is_cubic ? 2 : 1); ++j) {
                const double distance = first + j - at;
                const auto from =
                    std::clamp<std::int64_t>(static_cast<std::int64_t>(first) + j, 0, last);
                taps.push_back(
                    {static_cast<std::size_t>(from),
                     is_cubic ? cubic(distance, -0.75) : std::max(0.0, 1 - std::abs(distance))});
            }
            continue;
        }
        const double stretch = std::max(scale, 1.0), support = (is_cubic ? 2 : 1) * stretch;
        const auto begin = std::max<std::int64_t>(
            0, static_cast<std::int64_t>(std::floor(centre - support + 0.5)));
        const auto end = std::min<std::int64_t>(
            last + 1, static_cast<std::int64_t>(std::floor(centre + support + 0.5)));
        double sum = 0;
        for (std::int64_t from = begin; from < end; ++from) {
            const double distance = (static_cast<double>(from) - centre + 0.5) / stretch;
            const double weight =
                is_cubic ? cubic(distance, -0.5) : std::max(0.0, 1 - std::abs(distance));
            taps.push_back({static_cast<std::size_t>(from), weight});
            sum += weight;
        }
        for (Tap& tap : taps) tap.weight /= sum;
    }
    return all;
}

}  // namespace

std::vector<double> resized(const std::vector<double>& table, std::size_t rows, std::size_t columns,
                            std::size_t new_rows, std::size_t new_columns, Resize kind) {
    const std::size_t width = table.size() / (rows * columns);
    const auto along_rows = taps_of(columns, new_columns, kind);
    const auto along_columns = taps_of(rows, new_rows, kind);
    std::vector<double> wide(rows * new_columns * width), out(new_rows * new_columns * width);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < new_columns; ++c)
            for (const Tap& tap : along_rows[c])
                for (std::size_t i = 0; i < width; ++i)
                    wide[(r * new_columns + c) * width + i] +=
                        tap.weight * table[(r * columns + tap.from) * width + i];
    for (std::size_t r = 0; r < new_rows; ++r)
        for (const Tap& tap : along_columns[r])
            for (std::size_t i = 0; i < new_columns * width; ++i)
                out[r * new_columns * width + i] +=
                    tap.weight * wide[tap.from * new_columns * width + i];
    return out;
}

}  // namespace attn
