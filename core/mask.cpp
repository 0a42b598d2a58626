// Which query may see which key; see mask.hpp.
#include "core/mask.hpp"

#include <algorithm>
#include <limits>

namespace attn {

bool BandRule::allows(std::size_t, std::size_t, std::size_t query, std::size_t key) const {
    const std::int64_t position = static_cast<std::int64_t>(query) + offset_;
    const std::int64_t distance = static_cast<std::int64_t>(key) - position;
    return (left_ < 0 || distance >= -left_) && (right_ < 0 || distance <= right_);
}

Coverage BandRule::cover(const Block& b) const {
    // Distances key - position run from that of the last query and first key to that of the first
    // query and last key.
    const auto signed_ = [](std::size_t value) { return static_cast<std::int64_t>(value); };
    const std::int64_t nearest =
        signed_(b.first_key) - signed_(b.first_query + b.queries - 1) - offset_;
    const std::int64_t farthest =
        signed_(b.first_key + b.keys - 1) - signed_(b.first_query) - offset_;
    if ((right_ >= 0 && nearest > right_) || (left_ >= 0 && farthest < -left_))
        return Coverage::none;
    const bool all = (right_ < 0 || farthest <= right_) && (left_ < 0 || nearest >= -left_);
    return all ? Coverage::all : Coverage::some;
}

bool LengthRule::allows(std::size_t batch, std::size_t, std::size_t, std::size_t key) const {
    return key < lengths_[batch];
}

Coverage LengthRule::cover(const Block& b) const {
    if (b.first_key >= lengths_[b.batch]) return Coverage::none;
    return b.first_key + b.keys <= lengths_[b.batch] ? Coverage::all : Coverage::some;
}

Broadcast::Broadcast(const Array<double>& array, double beyond)
    : values_(array.begin(), array.end()), shape_{1, 1, 1, 1}, beyond_(beyond) {
    std::copy_backward(array.shape().begin(), array.shape().end(), std::end(shape_));
}

double Broadcast::at(std::size_t batch, std::size_t head, std::size_t query,
                     std::size_t key) const {
    if (shape_[3] != 1 && key >= shape_[3]) return beyond_;
    const std::size_t index[4] = {batch, head, query, key};
    std::size_t at = 0;
    for (std::size_t i = 0; i < 4; ++i) at = at * shape_[i] + (shape_[i] == 1 ? 0 : index[i]);
    return values_[at];
}

bool BooleanRule::allows(std::size_t batch, std::size_t head, std::size_t query,
                         std::size_t key) const {
    return (values_.at(batch, head, query, key) != 0) == true_keeps_;
}

bool BiasRule::allows(std::size_t batch, std::size_t head, std::size_t query,
                      std::size_t key) const {
    return bias_.at(batch, head, query, key) != -std::numeric_limits<double>::infinity();
}

bool Mask::allows(std::size_t batch, std::size_t head, std::size_t query, std::size_t key) const {
    return std::all_of(rules_.begin(), rules_.end(),
                       [&](const auto& rule) { return rule->allows(batch, head, query, key); });
}

Coverage Mask::cover(const Block& block) const {
    Coverage joined = Coverage::all;
    for (const auto& rule : rules_) {
        const Coverage one = rule->cover(block);
        if (one == Coverage::none) return Coverage::none;
        if (one == Coverage::some) joined = Coverage::some;
    }
    return joined;
}

}  // namespace attn
