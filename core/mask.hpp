// Which query may see which key.
#pragma once

#include <cstddef>

namespace attn {

/// A rule over (query, key) pairs, both counted from 0.
class Mask {
public:
    /// Every query sees every key.
    static Mask none() { return Mask(false); }

    /// Query i sees keys 0 to i (top-left aligned).
    static Mask causal() { return Mask(true); }

    bool allows(std::size_t query, std::size_t key) const { return !causal_ || key <= query; }

private:
    explicit Mask(bool causal) : causal_(causal) {}
    bool causal_;
};

}  // namespace attn
