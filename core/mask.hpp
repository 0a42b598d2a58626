// Which query may see which key: rules that are asked one by one, joined in one object that the
// reference path and every kernel ask by pair or by block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor.hpp"

namespace attn {

/// Queries [first_query, first_query + queries) against keys [first_key, first_key + keys) of one
/// batch entry and head. Queries are counted over the whole question, whatever part is computed.
struct Block {
    std::size_t batch, head, first_query, queries, first_key, keys;
};

enum class Coverage { all, none, some };

/// One kind of mask. A new kind is a class with `allows`; `cover` may say for a whole block what
/// `allows` would say for each of its pairs, and answers `some` where it does not know.
class MaskRule {
public:
    MaskRule() = default;
    MaskRule(const MaskRule&) = default;
    MaskRule& operator=(const MaskRule&) = default;
    virtual ~MaskRule() = default;
    virtual bool allows(std::size_t batch, std::size_t head, std::size_t query,
                        std::size_t key) const = 0;
    virtual Coverage cover(const Block&) const { return Coverage::some; }
};

/// p - left <= key <= p + right with p = query + offset; -1 is unbounded. Causal attention is
/// left = -1, right = 0.
class BandRule : public MaskRule {
public:
    BandRule(std::int64_t left, std::int64_t right, std::int64_t offset)
        : left_(left), right_(right), offset_(offset) {}
    bool allows(std::size_t batch, std::size_t head, std::size_t query,
                std::size_t key) const override;
    Coverage cover(const Block& block) const override;

private:
    std::int64_t left_, right_, offset_;
};

/// key < lengths[batch].
class LengthRule : public MaskRule {
public:
    explicit LengthRule(std::vector<std::uint64_t> lengths) : lengths_(std::move(lengths)) {}
    bool allows(std::size_t batch, std::size_t head, std::size_t query,
                std::size_t key) const override;
    Coverage cover(const Block& block) const override;

private:
    std::vector<std::uint64_t> lengths_;
};

/// An array right-aligned and broadcast to (batch, heads, q_len, kv_len). Keys past its last column
/// give `beyond`.
class Broadcast {
public:
    /// `array` has rank 1 to 4.
    Broadcast(const Array<double>& array, double beyond);
    double at(std::size_t batch, std::size_t head, std::size_t query, std::size_t key) const;

private:
    std::vector<double> values_;
    std::size_t shape_[4];
    double beyond_;
};

/// Where the array holds anything but 0, or, inverted, where it holds 0.
class BooleanRule : public MaskRule {
public:
    BooleanRule(const Array<double>& array, bool true_keeps)
        : values_(array, true_keeps ? 0 : 1), true_keeps_(true_keeps) {}
    bool allows(std::size_t batch, std::size_t head, std::size_t query,
                std::size_t key) const override;

private:
    Broadcast values_;
    bool true_keeps_;
};

/// Where an additive mask is not -Infinity.
class BiasRule : public MaskRule {
public:
    explicit BiasRule(Broadcast bias) : bias_(std::move(bias)) {}
    bool allows(std::size_t batch, std::size_t head, std::size_t query,
                std::size_t key) const override;

private:
    Broadcast bias_;
};

/// All rules at once: a pair is allowed where every rule allows it.
class Mask {
public:
    template <class Rule>
    void add(Rule rule) {
        rules_.push_back(std::make_shared<Rule>(std::move(rule)));
    }

    bool allows(std::size_t batch, std::size_t head, std::size_t query, std::size_t key) const;

    /// `none` where one rule blocks the whole block, `all` where every rule allows it all.
    Coverage cover(const Block& block) const;

private:
    std::vector<std::shared_ptr<const MaskRule>> rules_;
};

}  // namespace attn
