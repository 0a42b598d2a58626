#include "core/base/positions.hpp"

namespace attn {

PositionOffset PositionOffset::bottom_right(std::size_t q_len, std::size_t kv_len,
                                            const std::vector<std::uint64_t>& kv_lengths) {
    if (kv_lengths.empty()) return as_signed(kv_len) - as_signed(q_len);
    std::vector<std::int64_t> offsets;
    offsets.reserve(kv_lengths.size());
    for (const std::uint64_t length : kv_lengths)
        offsets.push_back(as_signed(length) - as_signed(q_len));
    return PositionOffset(std::move(offsets));
}

PositionOffset PositionOffset::from_key(std::size_t first_key) const {
    std::vector<std::int64_t> offsets = offsets_;
    for (std::int64_t& offset : offsets) offset -= as_signed(first_key);
    return PositionOffset(std::move(offsets));
}

}  // namespace attn
