// Softmax attention with its projections, as data.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <variant>

#include "core/model/parameter.hpp"
#include "core/operator/rope.hpp"
#include "core/operator/score_steps.hpp"

namespace attn {

/// The rotary embedding of some columns of each head. Pair i is rotated by the angle
/// position * frequencies[i]. Cosine and sine are multiplied by `factor`.
struct Rotation {
    RopeSettings rope;                ///< base 0: the angles have none
    std::vector<double> frequencies;  ///< those of `rope`, or changed further
    double factor = 1;
    std::size_t first = 0;  ///< the first column that is rotated
    double position_step = 1;
    /// Replaces the angles: cosine and sine of each pair by position, (positions, pairs, 2).
    std::shared_ptr<const std::vector<double>> table{};

    /// Whether `rope` alone gives the angles.
    bool is_of_rope() const {
        const RopeAngles angles = rope.angles();
        return factor == angles.factor && position_step == 1 && !table &&
               frequencies == angles.frequencies;
    }
};

/// The layout of queries, keys and values in the outputs of the projections.
enum class JoinedHeads {
    separate,  ///< three projections
    parts,     ///< all queries, then all keys, then all values
    groups,    ///< per key head: its queries, its key, its value
    blocks     ///< per block of `joined_blocks`: queries, values, keys (CodeGen)
};

/// The gate on the context vectors before the output projection.
struct ContextGate {
    enum class From { none, query_projection, own_projection } from = From::none;
    LinearMap map = {};    ///< for From::own_projection: one output per column, or per head
    bool is_silu = false;  ///< otherwise a sigmoid
};

/// exp(factor softplus(map values)), added to all scores of a key, per key head. Each query attends
/// to the `kept` visible keys with the largest biases.
struct KeyBias {
    LinearMap map;  ///< from the values of all heads
    std::vector<double> factor;
    std::size_t kept = 0;
};

/// Scores between contents and relative positions, added to the scaled scores. He et al. 2021,
/// arXiv 2006.03654.
struct RelativePositions {
    Parameter table;               ///< (rows, width)
    std::optional<NormSpec> norm;  ///< on its rows
    LinearMap key, query;  ///< projections of its rows, scored with queries and keys; absent: none
    double scale = 1;
    std::size_t centre = 0;         ///< row of relative position 0
    std::size_t largest = 0;        ///< distances are clamped to [-largest, largest - 1]
    bool clamps_to_length = false;  ///< also clamps to the number of tokens
    /// Maps a distance between query and key to a distance in rows; null: unchanged.
    std::function<std::int64_t(std::int64_t distance)> bucket;
};

/// ALiBi: the slope of each head times the distance to the key. A constant for all keys of a query
/// has no effect, so the term is the slope times the key's position itself.
struct Alibi {
    std::vector<double> slopes;
    bool in_bfloat16 = false;  ///< as Falcon computes it, and scaled like the scores
};

/// The bias of each head for the bucket of key and query.
struct BucketBias {
    DistanceBuckets buckets;
    std::vector<double> table;  ///< (buckets, heads)
};

/// (heads, q_len, kv_len) of the whole sequence, or its first numbers, before zeros.
struct FixedBias {
    std::vector<double> values;
};

/// Added to the scaled scores, by the positions of query and key.
using PositionBias = std::variant<std::monostate, Alibi, BucketBias, FixedBias>;

/// 1 + scale log(1 + floor(position / length)), the factor on a rotated query (Llama 4).
struct QueryFactor {
    double scale = 0, length = 1;
    bool by_row = false;  ///< by the token's row, counted from 1, not by its position id
};

/// The factor on the bias of a head's query: a (b c - 1) + 2 (WavLM). `map` gives 8 outputs from
/// the head's columns of x; a and b are the sigmoids of the sums of the first and the last four.
struct BiasGate {
    LinearMap map;                  ///< from one head's columns to 8 outputs
    std::vector<double> constants;  ///< c of each head
};

/// Queries, keys and values from low-rank latents. Per head, `key_up` gives the first columns of
/// the key and then the value. All heads share the last columns of the key.
struct LatentPart {
    LinearMap query_down;                ///< absent: queries are projections of the input
    std::optional<NormSpec> query_norm;  ///< on the query's latent
    LinearMap key_down;                  ///< gives the latent, then the shared columns
    std::optional<NormSpec> key_norm;
    LinearMap key_up;
    std::size_t shared_columns = 0;
};

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

/// Softmax attention with its projections.
struct AttentionPart {
    std::size_t heads = 1, kv_heads = 1, d_k = 0, d_v = 0;  ///< widths of one head
    JoinedHeads joined = JoinedHeads::separate;
    std::size_t joined_blocks = 1;
    LinearMap query, key, value;  ///< all three in `query` if they are joined
    LinearMap out;
    bool value_is_key = false;  ///< values are the keys before their norm and rotation
    /// The earlier layer whose keys and values are used, without projections of keys and values
    /// here.
    std::optional<std::size_t> shared_from;
    bool is_shared = false;  ///< a later layer uses the keys and values
    double clip = 0;         ///< projections are clipped to [-clip, clip]; 0: no clipping

    std::optional<NormSpec> query_norm, key_norm, value_norm;
    bool norms_whole = false;  ///< the norms are over all heads together, not over each head
    bool norms_after_rotation = false;
    std::optional<Rotation> rotation;
    std::optional<QueryFactor> query_factor;

    double scale = 1, softcap = 0;
    bool causal = true;
    std::optional<std::int64_t> window_left, window_right;  ///< inclusive distances
    std::optional<std::uint64_t> chunk;  ///< tokens attend only within chunks of this length
    std::vector<double> sink;
    PositionBias bias;
    ContextGate gate;
    std::optional<NormSpec> out_norm;  ///< on the concatenated heads, or on each head
    bool out_norm_per_head = false;
    bool clips_after_norm = false;  ///< `clip` applies to the normed queries and keys
    double value_scale = 1;         ///< on values
    std::optional<KeyBias> key_bias;
    /// Differential attention: heads i and i + half share the concatenated values of two key heads.
    /// The context of head i + half, times this, is subtracted from that of head i.
    std::optional<double> difference;
    bool rotates_values = false;                    ///< like queries and keys
    std::optional<RelativePositions> content_bias;  ///< replaces `bias`

    /// The same projections of the encoder's states give keys and values before the decoder's own.
    bool joins_encoder = false;
    bool bias_counts_valid = false;          ///< `bias` is by the number of valid keys before a key
    std::optional<BiasGate> bias_gate;       ///< on the rows of `bias`
    std::optional<LatentPart> latent;        ///< then `query` projects the query's latent
    std::optional<IndexerPart> indexer;      ///< chooses among the visible keys
    std::optional<std::size_t> choice_from;  ///< the earlier layer whose choice is used
};

/// The sines of position * base^(-i / (width / 2 - shortened)), then the cosines.
std::vector<double> sine_row(double position, std::size_t width, double shortened);

}  // namespace attn
