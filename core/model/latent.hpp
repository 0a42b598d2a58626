// Attention from latents (DeepSeek), and the indexer that chooses its keys.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/model/block.hpp"
#include "core/model/products.hpp"

namespace attn {

/// (1, tokens, heads * d), and the latent of queries, or nothing if there is none.
template <class T>
struct LatentHeads {
    Tensor3<T> query, key, value, query_latent;
};

/// Requires part.latent.
template <class T>
LatentHeads<T> project_latent(const Compute& compute, const AttentionPart& part,
                              const Tensor3<T>& x);

/// The keys with the largest scores, sum_h w_h relu(q_h k / sqrt(d)), are attended to.
struct IndexerPart {
    std::size_t heads = 1, width = 1, chosen = 0;
    LinearMap query;  ///< of the query's latent
    LinearMap key;
    NormSpec key_norm;
    LinearMap weights;  ///< of heads
    std::optional<Rotation> rotation;
    bool is_shared = false;  ///< later layers take the choice
};

std::shared_ptr<const KeyChoice> make_indexer(IndexerPart part);

/// The places of the `count` largest scores. Of equal ones those that torch.topk takes: -Infinity
/// are keys that may not be attended to, and they are left out.
std::vector<std::size_t> largest(const std::vector<double>& scores, std::size_t count);

/// The choice that `layer` made.
std::shared_ptr<const KeyChoice> choice_of_layer(std::size_t layer);

}  // namespace attn
