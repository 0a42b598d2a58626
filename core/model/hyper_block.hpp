// DeepSeek V4's block: hyper-connected streams, and attention to compressed keys.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/model/block.hpp"
#include "core/model/model.hpp"
#include "core/model/parameter.hpp"

namespace attn {

/// One key per `rate` tokens: the mean of their values, weighted by a softmax over these tokens.
struct Compressor {
    std::size_t rate = 1, width = 1;
    bool overlaps = false;  ///< includes the previous tokens; then both maps are twice as wide
    LinearMap value, gate;
    std::vector<double> gate_bias;  ///< (rate, columns), added to the gates
    NormSpec norm;
    Rotation rotation;  ///< at the position of the first token
};

/// Chooses compressed keys: the largest of sum_h w_h relu(q_h k / sqrt(d)).
struct CompressedIndexer {
    std::size_t heads = 1, chosen = 1;
    LinearMap query;  ///< projects the query's latent
    LinearMap weights;
    Compressor keys;
};

/// Attention with one key head, whose keys are also the values.
struct CompressedAttention {
    AttentionPart part;  ///< scale, sink, heads, and `query` from the latent
    LinearMap query_down, key;
    NormSpec query_norm, head_norm, key_norm;
    Rotation rotation;
    std::size_t window = 1;  ///< for keys that are not compressed
    std::optional<Compressor> compressor;
    std::optional<CompressedIndexer> indexer;
    std::vector<LinearMap> groups;  ///< output projection of each group of heads, before `out`
    LinearMap out;
};

/// Mixes streams into a part's input, and adds its output to them (mHC, Xie et al. 2026).
struct HyperConnection {
    std::size_t streams = 1, iterations = 1;
    double eps = 0, norm_eps = 0;
    LinearMap map;  ///< of all concatenated streams
    std::vector<double> base, scale;
};

struct HyperBlock {
    HyperConnection attention_streams, ffn_streams;
    NormSpec attention_norm, ffn_norm;
    CompressedAttention attention;
    Experts ffn;
    Parameter experts_of_ids;  ///< (vocabulary, chosen); null: the best experts
};

std::shared_ptr<const OtherMixer> make_hyper_block(HyperBlock part);

/// Each stream is a copy of the embedding.
std::shared_ptr<const HiddenStage> make_copies(std::size_t streams);

/// The weighted sum of the streams.
std::shared_ptr<const HiddenStage> make_sum_of_streams(HyperConnection part);

}  // namespace attn
