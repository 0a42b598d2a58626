// Additive position biases on scores, and computed position embeddings.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/model/parameter.hpp"

namespace attn {

/// Buckets of distances between key and query. Distant buckets grow logarithmically (Raffel et al.
/// 2020, arXiv 1910.10683).
struct DistanceBuckets {
    std::size_t count = 32;
    double max_distance = 128;
    bool both_sides = true;  ///< otherwise only keys before the query

    std::size_t of(std::size_t query, std::size_t key) const;
};

/// The bias of each head for the bucket of key and query, from a table (buckets, heads).
std::function<Array<double>(std::size_t first_query, std::size_t q_len, std::size_t kv_len)>
bucket_bias(const DistanceBuckets& buckets, const Parameter& table);

/// The sines of position * base^(-i / (width / 2 - shortened)), then the cosines.
std::vector<double> sine_row(double position, std::size_t width, double shortened);

}  // namespace attn
