#include "io/model/weight_split.hpp"

#include <numeric>

namespace attn::io {

std::vector<OutputRange> split_of(Packing packing, Part part, std::size_t outputs,
                                  std::size_t heads, std::size_t kv_heads) {
    if (packing == Packing::separate) return {{0, outputs, 0}};
    // Joined parts are one group. The lengths of a group's queries, keys and values.
    const std::size_t groups = packing == Packing::joined ? 1 : kv_heads;
    const std::size_t group = outputs / groups, total = heads + 2 * kv_heads;
    const std::size_t query = group * heads / total, key = group * kv_heads / total;
    const std::size_t before = part == Part::query ? 0 : part == Part::key ? query : query + key;
    const std::size_t count = part == Part::query ? query : key;
    std::vector<OutputRange> ranges;
    for (std::size_t i = 0; i < groups; ++i)
        ranges.push_back({i * group + before, count, i * count});
    return ranges;
}

std::size_t pieces_of(Packing packing, std::size_t heads, std::size_t kv_heads) {
    if (packing == Packing::separate) return 1;
    const std::size_t all = heads + 2 * kv_heads;
    return packing == Packing::joined ? all / std::gcd(heads, kv_heads) : all;
}

}  // namespace attn::io
