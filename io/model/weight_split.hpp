// Where queries, keys and values are in the tensors of a layer.
#pragma once

#include <cstddef>
#include <vector>

#include "io/model/family.hpp"

namespace attn::io {

enum class Part { query, key, value };
inline constexpr Part all_parts[] = {Part::query, Part::key, Part::value};

/// `count` outputs from `from` on in the stored tensor are outputs from `to` on of the part.
struct OutputRange {
    std::size_t from, count, to;
};

/// The outputs of a part in a tensor of `outputs` outputs, which pieces_of divides. Each key head
/// serves heads / kv_heads query heads.
std::vector<OutputRange> split_of(Packing packing, Part part, std::size_t outputs,
                                  std::size_t heads, std::size_t kv_heads);

/// The number of equal pieces that such a tensor consists of.
std::size_t pieces_of(Packing packing, std::size_t heads, std::size_t kv_heads);

}  // namespace attn::io
