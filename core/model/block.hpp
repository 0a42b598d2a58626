// One block of a transformer: its parts, its parameters, and how they are connected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/tensor.hpp"
#include "core/model/activation.hpp"
#include "core/model/parameter.hpp"
#include "core/operator/choices.hpp"

namespace attn {

struct Compute;
struct PartCost;
struct PartSize;

/// The rotary embedding of some columns of each head. Pair i is rotated by the angle
/// position * frequencies[i]. Cosine and sine are multiplied by `factor`.
struct Rotation {
    Rope pairs = Rope::half;
    std::vector<double> frequencies;
    double factor = 1;
    std::size_t first = 0;  ///< the first column that is rotated
    double position_step = 1;
    /// Replaces the angles: cosine and sine of each pair by position, (positions, pairs, 2).
    std::shared_ptr<const std::vector<double>> table;
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

/// A bias on the scaled scores, (heads, q_len, kv_len), that depends on the queries and keys,
/// (1, heads, tokens, d_k).
class ContentBias {
public:
    ContentBias() = default;
    ContentBias(const ContentBias&) = delete;
    ContentBias& operator=(const ContentBias&) = delete;
    virtual ~ContentBias() = default;
    virtual Array<double> run(const Compute& compute, const Tensor4<float>& query,
                              const Tensor4<float>& key) const = 0;
    virtual Array<double> run(const Compute& compute, const Tensor4<double>& query,
                              const Tensor4<double>& key) const = 0;
    /// The operations of its products; see cost.hpp.
    virtual double flops(std::size_t heads, std::size_t q_len, std::size_t kv_len,
                         std::size_t d) const = 0;
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

template <class T>
struct BlockRun;

/// Chooses the keys that each query attends to.
class KeyChoice {
public:
    KeyChoice() = default;
    KeyChoice(const KeyChoice&) = delete;
    KeyChoice& operator=(const KeyChoice&) = delete;
    virtual ~KeyChoice() = default;
    /// 1 where a query may attend to a key, (tokens, past + tokens). `latent` is the latent of the
    /// queries.
    virtual Array<double> run(BlockRun<float>& run, const Tensor3<float>& x,
                              const Tensor3<float>& latent) const = 0;
    virtual Array<double> run(BlockRun<double>& run, const Tensor3<double>& x,
                              const Tensor3<double>& latent) const = 0;
    /// The operations of its products; see cost.hpp.
    virtual double flops(std::size_t tokens, std::size_t keys) const = 0;
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
    /// The factor on the rotated query at a position; null: 1.
    std::function<double(double position)> query_factor;
    bool factor_by_row = false;  ///< its position is the token's row, not its position id

    double scale = 1, softcap = 0;
    bool causal = true;
    std::optional<std::int64_t> window_left, window_right;  ///< inclusive distances
    std::optional<std::uint64_t> chunk;  ///< tokens attend only within chunks of this length
    std::vector<double> sink;
    /// Added to the scaled scores: (heads, q_len, kv_len) for the first query position and lengths;
    /// null: nothing.
    std::function<Array<double>(std::size_t first_query, std::size_t q_len, std::size_t kv_len)>
        bias;
    ContextGate gate;
    std::optional<NormSpec> out_norm;  ///< on the concatenated heads, or on each head
    bool out_norm_per_head = false;
    bool clips_after_norm = false;  ///< `clip` applies to the normed queries and keys
    double value_scale = 1;         ///< on values
    std::optional<KeyBias> key_bias;
    /// Differential attention: heads i and i + half share the concatenated values of two key heads.
    /// The context of head i + half, times this, is subtracted from that of head i.
    std::optional<double> difference;
    bool rotates_values = false;                      ///< like queries and keys
    std::shared_ptr<const ContentBias> content_bias;  ///< replaces `bias`; null: none

    /// The same projections of the encoder's states give keys and values before the decoder's own.
    bool joins_encoder = false;
    bool bias_counts_valid = false;     ///< `bias` is by the number of valid keys before a key
    std::optional<BiasGate> bias_gate;  ///< on the rows of `bias`
    std::optional<LatentPart> latent;   ///< then `query` projects the query's latent
    std::shared_ptr<const KeyChoice> choice;  ///< null: all visible keys
};

/// A gated or plain feed-forward layer: down(act(gate x) * up x), or down(act(up x)).
struct FeedForward {
    LinearMap gate, up, down;
    enum class Joined { no, gate_first, up_first, interleaved } joined = Joined::no;  ///< in `up`
    const Activation* activation = nullptr;
    double limit = 0;      ///< clamps gate to at most this, up to [-this, this]; 0: no clamp
    double alpha = 0;      ///< if not 0, the activation is x sigmoid(alpha x)
    double up_offset = 0;  ///< added to up
    std::optional<NormSpec> inner_norm;  ///< before `down`
    double sparsity_z = 0;               ///< max(gate - (mean + z deviations), 0); 0: no cut
    bool is_sparse = false;
    std::vector<double> activation_numbers;  ///< parameters of xIELU
};

/// A mixture of experts: each token is routed to the experts with the best scores.
struct Experts {
    enum class Scores { softmax, sigmoid, sqrt_softplus, softmax_of_chosen, one_by_one };
    LinearMap router;
    Scores scores = Scores::softmax;
    std::vector<double> choice_bias;   ///< added to scores for the choice only
    std::vector<double> expert_scale;  ///< on the routing weight of each expert
    std::size_t count = 0, chosen = 0, groups = 1, chosen_groups = 1;
    bool groups_by_best = false;  ///< a group's score is its best, else the sum of its two best
    bool normalise = false;
    double sum_eps = 0, factor = 1;
    bool scales_input = false;  ///< routing weights multiply the expert's input, not its output
    std::function<FeedForward(std::size_t expert)> expert;
    std::optional<FeedForward> shared;
    LinearMap shared_gate;
    std::optional<NormSpec> router_norm;  ///< on the router's input
    std::vector<double> router_scale;     ///< on the columns of the router's input
    /// The experts of each token, instead of the best; empty: the best.
    std::vector<std::vector<std::size_t>> by_token;
    double sum_least = 0;      ///< lower bound of the sum of weights
    double tolerance = 0;      ///< for Scores::one_by_one: relative distance from the best score
    double norm_power = 1;     ///< `normalise` divides by the norm of this power
    double shared_factor = 1;  ///< on the output of the shared expert
};

struct TransformerBlock;

/// A mixer of tokens other than softmax attention. It keeps the shape (1, tokens, width).
class OtherMixer {
public:
    OtherMixer() = default;
    OtherMixer(const OtherMixer&) = delete;
    OtherMixer& operator=(const OtherMixer&) = delete;
    virtual ~OtherMixer() = default;
    virtual Tensor3<float> run(BlockRun<float>& run, const Tensor3<float>& x) const = 0;
    virtual Tensor3<double> run(BlockRun<double>& run, const Tensor3<double>& x) const = 0;
    virtual PartCost cost(const PartSize& size) const = 0;
    /// The number of streams of hidden states that it takes.
    virtual std::size_t streams() const { return 1; }
};

/// How attention and the feed-forward layer are connected to the residual.
enum class BlockOrder {
    sequential,  ///< x += attention, then x += feed-forward
    parallel     ///< x += attention + feed-forward of the same x
};

struct TransformerBlock {
    std::size_t layer = 0;
    BlockOrder order = BlockOrder::sequential;
    /// Norms before each part, on its output before the residual sum, and after the sum (BERT).
    std::optional<NormSpec> attention_norm, attention_post_norm, attention_sum_norm;
    std::optional<NormSpec> ffn_norm, ffn_post_norm, ffn_sum_norm;
    bool ffn_shares_norm = false;  ///< parallel: the feed-forward layer uses attention's normed x
    double residual_factor = 1;    ///< on the output of each part
    double skip_factor = 1;        ///< on the residual x, at both sums
    std::vector<double> attention_scale, ffn_scale;  ///< per column, on the outputs (LayerScale)
    bool residual_is_normed = false;                 ///< the residual is the normed x

    std::variant<AttentionPart, std::shared_ptr<const OtherMixer>> mixer;
    std::optional<AttentionPart>
        cross;  ///< cross-attention to the encoder's states, after the mixer
    std::optional<NormSpec> cross_norm, cross_sum_norm;

    std::variant<std::monostate, FeedForward, Experts> ffn;
    std::optional<FeedForward> dense;  ///< next to the experts, added to their output

    /// If not null, computes the whole block: for blocks of another structure.
    std::shared_ptr<const OtherMixer> whole;
    std::vector<double> attention_skip, ffn_skip;  ///< per column, on the residual; empty: 1

    std::optional<NormSpec> cross_post_norm;  ///< on the output of cross-attention
    std::optional<NormSpec> adapter_norm;
    std::optional<FeedForward> adapter;  ///< after the feed-forward layer, with a residual
    /// Applied to the block's output; null: nothing.
    std::shared_ptr<const OtherMixer> after;
    /// Norms on the experts' input, their output and the output of `dense`, before the sum (Gemma
    /// 4).
    std::optional<NormSpec> expert_norm, expert_post_norm, dense_post_norm;
};

}  // namespace attn
