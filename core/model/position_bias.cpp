#include "core/model/position_bias.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace attn {

std::size_t DistanceBuckets::of(std::size_t query, std::size_t key) const {
    std::size_t buckets = count, first = 0, distance = query > key ? query - key : 0;
    if (both_sides) {
        buckets /= 2;
        if (key > query) {
            first = buckets;
            distance = key - query;
        }
    }
    const std::size_t exact = buckets / 2;
    if (distance < exact) return first + distance;
    // In float32, as the models were trained with: at the edges of buckets the rounding decides.
    const float ratio = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                        static_cast<float>(std::log(max_distance / static_cast<double>(exact)));
    const float more = ratio * static_cast<float>(buckets - exact);
    const float limit = static_cast<float>(buckets - 1 - exact);
    return first + exact + static_cast<std::size_t>(std::clamp(more, 0.0F, limit));
}

std::function<Array<double>(std::size_t, std::size_t, std::size_t)> bucket_bias(
    const DistanceBuckets& buckets, const Parameter& table) {
    const auto values = std::make_shared<const std::vector<double>>(elements_of(table));
    const std::size_t heads = table->shape()[1];
    return [=](std::size_t first_query, std::size_t q_len, std::size_t kv_len) {
        Array<double> bias = Array<double>::from_shape({heads, q_len, kv_len});
        for (std::size_t q = 0; q < q_len; ++q)
            for (std::size_t k = 0; k < kv_len; ++k) {
                const std::size_t bucket = buckets.of(first_query + q, k);
                for (std::size_t h = 0; h < heads; ++h)
                    bias(h, q, k) = (*values)[bucket * heads + h];
            }
        return bias;
    };
}

std::vector<double> sine_row(double position, std::size_t width, double shortened) {
    constexpr double base = 10000;
    const std::size_t cosines = width / 2, sines = width - cosines;
    std::vector<double> row(width);
    for (std::size_t i = 0; i < sines; ++i) {
        const double exponent =
            static_cast<double>(i) / (static_cast<double>(width) / 2 - shortened);
        const double angle = position * std::pow(base, -exponent);
        row[i] = std::sin(angle);
        if (i < cosines) row[sines + i] = std::cos(angle);
    }
    return row;
}

}  // namespace attn
