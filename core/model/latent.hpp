// Multi-head latent attention (DeepSeek), and the indexer that chooses its keys.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/model/block.hpp"
#include "core/model/products.hpp"

namespace attn {

/// (1, tokens, heads * d). `query_latent` is empty if queries have no latent.
template <class T>
struct LatentHeads {
    Tensor3<T> query, key, value, query_latent;
};

/// Requires part.latent.
template <class T>
LatentHeads<T> project_latent(const Compute& compute, const AttentionPart& part,
                              const Tensor3<T>& x);

/// Chooses the keys with the largest scores sum_h w_h relu(q_h k / sqrt(d)).
struct IndexerPart {
    std::size_t heads = 1, width = 1, chosen = 0;
    LinearMap query;  ///< projects the query's latent
    LinearMap key;
    NormSpec key_norm;
    LinearMap weights;  ///< w of each head
    std::optional<Rotation> rotation;
    bool is_shared = false;  ///< later layers use the choice
};

std::shared_ptr<const KeyChoice> make_indexer(IndexerPart part);

/// The indices of the `count` largest scores; among equal scores, those that torch.topk chooses.
/// Keys with -Infinity are masked and left out.
std::vector<std::size_t> largest(const std::vector<double>& scores, std::size_t count);

/// Reuses the choice of `layer`.
std::shared_ptr<const KeyChoice> choice_of_layer(std::size_t layer);

}  // namespace attn
