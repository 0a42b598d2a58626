// The keys that each query may attend to: separate rules, combined in one object that the reference
// and the kernels query by pair or by block.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "core/base/number_type.hpp"
#include "core/base/positions.hpp"
#include "core/base/tensor.hpp"
#include "core/expression/expression.hpp"
#include "core/operator/arrays.hpp"

namespace attn {

enum class Coverage { all, none, some };

/// The mask settings, without masks that are operands, and without causal attention, which may come
/// from the mode.
struct MaskSettings {
    std::vector<std::uint64_t> kv_lengths;  ///< valid keys of each batch entry; empty: all
    std::vector<std::int64_t> window;       ///< {left, right} around a query; -1 is unbounded
    Expression mask_mod;                    ///< true where a query attends to a key; empty: all
    /// With causal: keys that all queries attend to, one number for all batch entries or one each.
    std::vector<std::uint64_t> prefix_len;
    std::optional<std::uint64_t> top_k;       ///< after all masks: keys of the highest scores
    std::optional<std::uint64_t> keep_first;  ///< with a window: keys that all queries attend to
    std::optional<std::uint64_t> chunk;       ///< tokens of a block that attends to itself
    std::optional<std::uint64_t> dilation;    ///< the distance of keys is a multiple of it
    /// (tokens) or (batch, tokens): tokens with the same number attend to each other; of the
    /// queries, and of the keys if they are others; or null.
    std::shared_ptr<const Array<double>> segment_ids, kv_segment_ids;
    /// In place of kv_lengths: (batch, queries); or null.
    std::shared_ptr<const Array<double>> query_lengths;
    /// (blocks of queries, blocks of keys), after heads or batch and heads: where it is not 0,
    /// these queries attend to these keys; or null.
    std::shared_ptr<const Array<double>> block_mask;
    std::vector<std::uint64_t> block_size;  ///< of queries and keys; empty: the lengths by blocks
    /// Sizes of a grid of tokens, and of the keys around a query on it: one, or one for each axis.
    std::vector<std::uint64_t> grid, neighborhood;
    /// Where each sequence of packed ones begins, and the end of the last; of keys, if not null.
    std::shared_ptr<const Array<double>> cu_seqlens, cu_seqlens_k;
};

/// Keys [first, end).
struct KeyRange {
    std::size_t first, end;
};

/// One kind of mask. A new kind is a class with `allows`. The other three answer for many pairs at
/// once, so that kernels need not query each pair; their defaults here are correct for every mask.
class MaskRule {
public:
    MaskRule() = default;
    MaskRule(const MaskRule&) = default;
    MaskRule& operator=(const MaskRule&) = default;
    virtual ~MaskRule() = default;
    virtual bool allows(std::size_t batch, std::size_t head, std::size_t query,
                        std::size_t key) const = 0;
    /// `some` if it is not known.
    virtual Coverage cover(const Block&) const { return Coverage::some; }
    /// The part of the block's keys outside which none is allowed for any of its queries.
    virtual KeyRange range(const Block& block) const {
        return {block.first_key, block.first_key + block.keys};
    }
    /// Clears bit first_lane + i of seen[k] if query first_query + i may not attend to key
    /// first_key + k.
    virtual void block_unseen(const Block& block, std::size_t first_lane,
                              std::uint64_t* seen) const;
};

/// p - left <= key <= p + right with p = query + offset; -1 is unbounded. Causal attention is
/// left = -1, right = 0.
class BandRule : public MaskRule {
public:
    BandRule(std::int64_t left, std::int64_t right, PositionOffset offset)
        : left_(left), right_(right), offset_(std::move(offset)) {}
    bool allows(std::size_t batch, std::size_t head, std::size_t query,
                std::size_t key) const override;
    Coverage cover(const Block& block) const override;
    KeyRange range(const Block& block) const override;
    void block_unseen(const Block& block, std::size_t first_lane,
                      std::uint64_t* seen) const override;

private:
    /// The keys of the block that this query attends to, relative to its first key.
    KeyRange seen_by(std::size_t query, const Block& block) const;

    std::int64_t left_, right_;
    PositionOffset offset_;
};

/// key < lengths[batch].
class LengthRule : public MaskRule {
public:
    explicit LengthRule(std::vector<std::uint64_t> lengths) : lengths_(std::move(lengths)) {}
    bool allows(std::size_t batch, std::size_t head, std::size_t query,
                std::size_t key) const override;
    Coverage cover(const Block& block) const override;
    KeyRange range(const Block& block) const override;

private:
    std::vector<std::uint64_t> lengths_;
};

/// An array right-aligned and broadcast to (batch, heads, q_len, kv_len). Keys past its last column
/// have the value `beyond`.
class Broadcast {
public:
    /// `array` has rank 1 to 4.
    Broadcast(Array<double> array, double beyond);
    double at(std::size_t batch, std::size_t head, std::size_t query, std::size_t key) const;
    /// Whether the key is not past the last column.
    bool has_key(std::size_t key) const { return shape_[3] == 1 || key < shape_[3] - first_key_; }

    /// The row of one query: its keys are at values().data()[row(...) + key * key_step()].
    std::size_t row(std::size_t batch, std::size_t head, std::size_t query) const;
    std::size_t key_step() const { return shape_[3] == 1 ? 0 : 1; }
    const Array<double>& values() const { return values_; }

    /// The same with keys numbered from `first_key`: key 0 is then this one.
    Broadcast from_key(std::size_t first_key) const;

    void round_to(NumberType type) {
        const auto round = row_of(arithmetic_of(type)).round;
        for (double& value : values_) value = rounded(round(value), type);
    }

private:
    Array<double> values_;
    std::size_t shape_[4];
    std::size_t first_key_ = 0;  // at most the number of columns
    double beyond_;
};

class BroadcastRule : public MaskRule {
public:
    /// Where the array holds anything but 0, or, inverted, where it holds 0.
    BroadcastRule(Array<double> array, bool true_keeps)
        : values_(std::move(array), true_keeps ? 0 : 1), others_keep_(true_keeps) {}
    /// Where an additive mask is not -Infinity.
    explicit BroadcastRule(Broadcast bias)
        : values_(std::move(bias)), number_(-std::numeric_limits<double>::infinity()) {}
    bool allows(std::size_t batch, std::size_t head, std::size_t query,
                std::size_t key) const override;

private:
    Broadcast values_;
    double number_ = 0;
    bool others_keep_ = true;
};

/// All rules at once: a pair is allowed where every rule allows it.
class Mask {
public:
    /// `allowed` is the array that records where this rule allows a key.
    struct NamedRule {
        std::optional<ArrayId> allowed;
        std::shared_ptr<const MaskRule> rule;
    };

    template <class Rule>
    void add(Rule rule, std::optional<ArrayId> allowed = std::nullopt) {
        rules_.push_back({allowed, std::make_shared<Rule>(std::move(rule))});
    }

    const std::vector<NamedRule>& rules() const { return rules_; }
    /// The rules' number of key 0.
    std::size_t first_key() const { return first_key_; }

    bool allows(std::size_t batch, std::size_t head, std::size_t query, std::size_t key) const;

    /// `none` if one rule masks the whole block, `all` if every rule allows all of it.
    Coverage cover(const Block& block) const;
    KeyRange range(const Block& block) const;
    void block_unseen(const Block& block, std::size_t first_lane, std::uint64_t* seen) const;

    /// The same rules for keys numbered from `first_key`.
    Mask from_key(std::size_t first_key) const;

private:
    Block moved(Block block) const;

    std::vector<NamedRule> rules_;
    std::size_t first_key_ = 0;
};

}  // namespace attn
