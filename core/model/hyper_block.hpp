// DeepSeek V4's block: streams with hyper-connections, and attention to compressed keys as well.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/model/block.hpp"
#include "core/model/model.hpp"
#include "core/model/parameter.hpp"

namespace attn {

/// One key for every `rate` tokens: their values, weighted by a softmax over these tokens.
struct Compressor {
    std::size_t rate = 1, width = 1;
    bool overlaps = false;  ///< also of the tokens before; both maps are twice as wide then
    LinearMap value, gate;
    std::vector<double> gate_bias;  ///< (rate, columns), added to the gates
    NormSpec norm;
    Rotation rotation;  ///< at the first of the tokens
};

/// Chooses compressed keys: the largest of sum_h w_h relu(q_h k / sqrt(d)).
struct CompressedIndexer {
    std::size_t heads = 1, chosen = 1;
    LinearMap query;  ///< of the query's latent
    LinearMap weights;
    Compressor keys;
};

/// Attention with one head of keys, which are the values as well.
struct CompressedAttention {
    AttentionPart part;  ///< its scale, sink, heads and `query` of the latent
    LinearMap query_down, key;
    NormSpec query_norm, head_norm, key_norm;
    Rotation rotation;
    std::size_t window = 1;  ///< of keys that are not compressed
    std::optional<Compressor> compressor;
    std::optional<CompressedIndexer> indexer;
    std::vector<LinearMap> groups;  ///< of heads, before `out`
    LinearMap out;
};

/// How streams make a part's input, and take its output (Xie et al. 2026, mHC).
struct HyperConnection {
    std::size_t streams = 1, iterations = 1;
    double eps = 0, norm_eps = 0;
    LinearMap map;  ///< of all streams side by side
    std::vector<double> base, scale;
};

struct HyperBlock {
    HyperConnection attention_streams, ffn_streams;
    NormSpec attention_norm, ffn_norm;
    CompressedAttention attention;
    Experts ffn;
    Parameter experts_of_ids;  ///< (vocabulary, chosen); null: the best
};

std::shared_ptr<const OtherMixer> make_hyper_block(HyperBlock part);

/// Copies of the embedding.
std::shared_ptr<const HiddenStage> make_copies(std::size_t streams);

/// The weighted sum of the streams.
std::shared_ptr<const HiddenStage> make_sum_of_streams(HyperConnection part);

}  // namespace attn
