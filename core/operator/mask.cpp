#include "core/operator/mask.hpp"

namespace attn {

void MaskRule::block_unseen(const Block& b, std::size_t first_lane, std::uint64_t* seen) const {
    for (std::size_t k = 0; k < b.keys; ++k)
        for (std::size_t q = 0; q < b.queries; ++q)
            if (!allows(b.batch, b.head, b.first_query + q, b.first_key + k))
                seen[k] &= ~(std::uint64_t{1} << (first_lane + q));
}

bool BandRule::allows(std::size_t batch, std::size_t, std::size_t query, std::size_t key) const {
    const std::int64_t position = as_signed(query) + offset_.of(batch);
    const std::int64_t distance = as_signed(key) - position;
    return (left_ < 0 || distance >= -left_) && (right_ < 0 || distance <= right_);
}

Coverage BandRule::cover(const Block& b) const {
    // Distances key - position run from that of the last query and first key to that of the first
    // query and last key.
    const std::int64_t nearest =
        as_signed(b.first_key) - as_signed(b.first_query + b.queries - 1) - offset_.of(b.batch);
    const std::int64_t farthest =
        as_signed(b.first_key + b.keys - 1) - as_signed(b.first_query) - offset_.of(b.batch);
    if ((right_ >= 0 && nearest > right_) || (left_ >= 0 && farthest < -left_))
        return Coverage::none;
    const bool all = (right_ < 0 || farthest <= right_) && (left_ < 0 || nearest >= -left_);
    return all ? Coverage::all : Coverage::some;
}

KeyRange BandRule::seen_by(std::size_t query, const Block& b) const {
    const std::int64_t position = as_signed(query) + offset_.of(b.batch) - as_signed(b.first_key);
    const std::int64_t keys = as_signed(b.keys);
    const std::int64_t first = left_ < 0 ? 0 : std::clamp(position - left_, std::int64_t{0}, keys);
    const std::int64_t end =
        right_ < 0 ? keys : std::clamp(position + right_ + 1, std::int64_t{0}, keys);
    return {static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, end))};
}

KeyRange BandRule::range(const Block& b) const {
    const std::size_t first = seen_by(b.first_query, b).first;
    const std::size_t end = seen_by(b.first_query + b.queries - 1, b).end;
    return {b.first_key + first, b.first_key + std::max(first, end)};
}

void BandRule::block_unseen(const Block& b, std::size_t first_lane, std::uint64_t* seen) const {
    // Each lane attends to one run of keys; along the keys, lanes begin and end.
    std::vector<std::uint64_t> change(b.keys + 1, 0);
    std::uint64_t lanes = 0;
    for (std::size_t q = 0; q < b.queries; ++q) {
        const std::uint64_t lane = std::uint64_t{1} << (first_lane + q);
        const KeyRange keys = seen_by(b.first_query + q, b);
        lanes |= lane;
        change[keys.first] ^= lane;
        change[keys.end] ^= lane;
    }
    std::uint64_t inside = 0;
    for (std::size_t k = 0; k < b.keys; ++k) {
        inside ^= change[k];
        seen[k] &= inside | ~lanes;
    }
}

bool LengthRule::allows(std::size_t batch, std::size_t, std::size_t, std::size_t key) const {
    return key < lengths_[batch];
}

Coverage LengthRule::cover(const Block& b) const {
    if (b.first_key >= lengths_[b.batch]) return Coverage::none;
    return b.first_key + b.keys <= lengths_[b.batch] ? Coverage::all : Coverage::some;
}

KeyRange LengthRule::range(const Block& b) const {
    const std::size_t end = std::min<std::size_t>(b.first_key + b.keys, lengths_[b.batch]);
    return {b.first_key, std::max(b.first_key, end)};
}

Broadcast::Broadcast(Array<double> array, double beyond)
    : values_(std::move(array)), shape_{1, 1, 1, 1}, beyond_(beyond) {
    std::copy_backward(values_.shape().begin(), values_.shape().end(), std::end(shape_));
}

std::size_t Broadcast::row(std::size_t batch, std::size_t head, std::size_t query) const {
    const std::size_t index[3] = {batch, head, query};
    std::size_t at = 0;
    for (std::size_t i = 0; i < 3; ++i) at = at * shape_[i] + (shape_[i] == 1 ? 0 : index[i]);
    return at * shape_[3] + first_key_ * key_step();
}

Broadcast Broadcast::from_key(std::size_t first_key) const {
    Broadcast moved = *this;
    moved.first_key_ = std::min(first_key_ + first_key, shape_[3]);
    return moved;
}

double Broadcast::at(std::size_t batch, std::size_t head, std::size_t query,
                     std::size_t key) const {
    if (!has_key(key)) return beyond_;
    return values_.data()[row(batch, head, query) + key * key_step()];
}

bool BroadcastRule::allows(std::size_t batch, std::size_t head, std::size_t query,
                           std::size_t key) const {
    return (values_.at(batch, head, query, key) != number_) == others_keep_;
}

bool Mask::allows(std::size_t batch, std::size_t head, std::size_t query, std::size_t key) const {
    return std::all_of(rules_.begin(), rules_.end(), [&](const NamedRule& named) {
        return named.rule->allows(batch, head, query, key + first_key_);
    });
}

Block Mask::moved(Block block) const {
    block.first_key += first_key_;
    return block;
}

Coverage Mask::cover(const Block& block) const {
    Coverage joined = Coverage::all;
    for (const auto& [allowed, rule] : rules_) {
        const Coverage one = rule->cover(moved(block));
        if (one == Coverage::none) return Coverage::none;
        if (one == Coverage::some) joined = Coverage::some;
    }
    return joined;
}

KeyRange Mask::range(const Block& block) const {
    KeyRange joined{block.first_key, block.first_key + block.keys};
    for (const auto& [allowed, rule] : rules_) {
        const KeyRange one = rule->range(moved(block));
        joined.first = std::max(joined.first, one.first - first_key_);
        joined.end = std::min(joined.end, one.end - first_key_);
    }
    return {joined.first, std::max(joined.first, joined.end)};
}

void Mask::block_unseen(const Block& block, std::size_t first_lane, std::uint64_t* seen) const {
    for (const auto& [allowed, rule] : rules_) rule->block_unseen(moved(block), first_lane, seen);
}

Mask Mask::from_key(std::size_t first_key) const {
    Mask mask = *this;
    mask.first_key_ += first_key;
    return mask;
}

}  // namespace attn
