// One projection x W^T + b: its parameters, and the product in plain arithmetic.
#pragma once

#include <cstddef>

#include "core/base/number_type.hpp"
#include "core/base/tensor.hpp"

namespace attn {

/// One projection, or one for each independent head.
template <class T>
struct Projection {
    /// (groups, d_out, d_in) as nn.Linear stores it, or (groups, d_in, d_out) where `in_out`.
    Tensor3<T> weight;
    /// (groups, d_out); empty without a bias.
    Tensor2<T> bias;
    bool in_out = false;

    bool has_bias() const { return bias.size() != 0; }
    std::size_t groups() const { return weight.shape(0); }
    std::size_t d_in() const { return weight.shape(in_out ? 1 : 2); }
    std::size_t d_out() const { return weight.shape(in_out ? 2 : 1); }
    /// From column i of x to column o of the result.
    T at(std::size_t group, std::size_t o, std::size_t i) const {
        return in_out ? weight(group, i, o) : weight(group, o, i);
    }
};

/// The destination of one projection, its columns divided into `heads` of equal width.
template <class T>
struct ProjectionTo {
    const Projection<T>& projection;
    std::size_t heads;
    HeadRows<T> result;
};

/// x W^T + b for every group, concatenated: (batch, rows, d_in) to (batch, rows, groups * d_out).
/// Arithmetic as in torch_math.hpp, the bias added last, each sum rounded to `sum_type`.
template <class T>
Tensor3<T> project(const Tensor3<T>& x, const Projection<T>& projection,
                   NumberType sum_type = NumberType::float32);

}  // namespace attn
