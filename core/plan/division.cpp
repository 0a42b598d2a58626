#include "core/plan/division.hpp"

#include <numeric>

namespace attn {
namespace {

/// Whether a mask from a file differs along an axis of (batch, heads, q_len, kv_len).
bool has_axis(const OperandShapes& operands, std::size_t axis) {
    return std::ranges::any_of(mask_operands, [&](const OperandRow* mask) {
        return full_shape(*mask, operands[*mask])[axis] > 1;
    });
}

/// Whether something besides the operands depends on the index of a batch entry.
bool counts_entries(const Plan& plan) {
    return has_axis(plan.operands, 0) || !plan.config.kv_lengths.empty() ||
           plan.config.dropout != 0;
}

/// Whether something besides the operands depends on the index of a head.
bool counts_heads(const Plan& plan) {
    return has_axis(plan.operands, 1) || plan.config.sink.size() > 1 || plan.config.alibi ||
           !plan.config.head_scales.empty() || plan.config.dropout != 0;
}

/// Part `part` of `parts` equal parts.
IndexRange part_of(std::size_t count, std::size_t part, std::size_t parts) {
    return {count / parts * part, count / parts};
}

}  // namespace

Share share_of(const Plan& plan, std::size_t rank, std::size_t ranks) {
    const bool divides_heads = !counts_heads(plan) && !plan.projects && !plan.packed;
    const std::size_t batch_parts = counts_entries(plan) ? 1 : std::gcd(plan.batch, ranks);
    const std::size_t head_parts = divides_heads ? std::gcd(plan.kv_heads, ranks / batch_parts) : 1;
    Share share;
    share.head_parts = head_parts;
    share.ring_size = ranks / batch_parts / head_parts;
    // NOLINTNEXTLINE(clang-analyzer-core.*): the common divisors divide ranks, which is not 0
    share.ring = rank / share.ring_size;
    share.ring_rank = rank % share.ring_size;
    share.batches = part_of(plan.batch, share.ring / head_parts, batch_parts);
    share.heads = part_of(plan.heads, share.ring % head_parts, head_parts);
    share.kv_heads = part_of(plan.kv_heads, share.ring % head_parts, head_parts);
    return share;
}

std::array<IndexRange, 2> chunks_of(std::size_t length, std::size_t ring_rank,
                                    std::size_t ring_size) {
    const std::size_t chunks = 2 * ring_size;
    // The first chunks have one row more if the rows cannot be divided equally.
    const auto first_of = [&](std::size_t chunk) {
        return length / chunks * chunk + std::min(chunk, length % chunks);
    };
    const auto chunk_at = [&](std::size_t chunk) {
        return IndexRange{first_of(chunk), first_of(chunk + 1) - first_of(chunk)};
    };
    return {chunk_at(ring_rank), chunk_at(chunks - 1 - ring_rank)};
}

}  // namespace attn
