// Queries and keys by number: blocks of them, and where a query is among the keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace attn {

constexpr std::int64_t as_signed(std::size_t index) {
    return static_cast<std::int64_t>(index);
}

/// Queries [first_query, first_query + queries) against keys [first_key, first_key + keys) of one
/// batch entry and head. Queries are numbered in the whole question, even if only a part is
/// computed.
struct Block {
    std::size_t batch, head, first_query, queries, first_key, keys;
};

/// From a query's index to its position among the keys: the same for all batch entries, or one
/// each.
class PositionOffset {
public:
    // NOLINTNEXTLINE(google-explicit-constructor): one number for all entries
    PositionOffset(std::int64_t of_all = 0) : offsets_{of_all} {}
    explicit PositionOffset(std::vector<std::int64_t> of_each) : offsets_(std::move(of_each)) {}

    /// The last query is at the last key; if the numbers of valid keys are given, at the last one
    /// of its batch entry.
    static PositionOffset bottom_right(std::size_t q_len, std::size_t kv_len,
                                       const std::vector<std::uint64_t>& kv_lengths);

    std::int64_t of(std::size_t batch) const { return offsets_[offsets_.size() == 1 ? 0 : batch]; }
    /// The positions among keys that are numbered from `first_key`.
    PositionOffset from_key(std::size_t first_key) const;
    /// One for all batch entries, or one each.
    const std::vector<std::int64_t>& values() const { return offsets_; }
    bool operator==(const PositionOffset&) const = default;

private:
    std::vector<std::int64_t> offsets_;
};

}  // namespace attn
