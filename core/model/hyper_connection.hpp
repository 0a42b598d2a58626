// Hyper-connections: how several streams make a part's input and take its output.
#pragma once

#include <vector>

#include "core/model/hyper_block.hpp"
#include "core/model/products.hpp"

namespace attn {

/// What a connection computes of the streams of each token.
template <class T>
struct Connected {
    Tensor3<T> input;
    std::vector<double> post, mix;  ///< (tokens, streams), (tokens, streams, streams)
};

template <class T>
Connected<T> connect(const Compute& compute, const HyperConnection& part, const Tensor3<T>& x);

/// Stream j becomes post_j y + sum_i mix[i, j] x_i.
template <class T>
Tensor3<T> expand(const Connected<T>& from, const Tensor3<T>& x, const Tensor3<T>& y);

}  // namespace attn
