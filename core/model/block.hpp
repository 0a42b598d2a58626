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

/// The rotary embedding of some columns of each head. Pair i turns by position * frequencies[i];
/// cosine and sine are multiplied by `factor`.
struct Rotation {
    Rope pairs = Rope::half;
    std::vector<double> frequencies;
    double factor = 1;
    std::size_t first = 0;  ///< the first column that is rotated
    double position_step = 1;
    /// Cosine and sine of each pair by position, (positions, pairs, 2), instead of the angles.
    std::shared_ptr<const std::vector<double>> table;
};

/// How queries, keys and values lie in the outputs of one product.
enum class JoinedHeads {
    separate,  ///< three products
    parts,     ///< all queries, then all keys, then all values
    groups,    ///< per key head: its queries, its key, its value
    blocks     ///< per block of `joined_blocks`: queries, values, keys (CodeGen)
};

/// What multiplies the context before the output projection.
struct ContextGate {
    enum class From { none, query_projection, own_projection } from = From::none;
    LinearMap map = {};    ///< of From::own_projection: one output per column, or per head
    bool is_silu = false;  ///< else a sigmoid
};

/// A number added to all scores of a key, exp(factor softplus(map values)), per key head; of the
/// keys that masks allow, each query attends to those with the largest.
struct KeyBias {
    LinearMap map;  ///< from the values of all heads
    std::vector<double> factor;
    std::size_t kept = 0;
};

/// What is added to the scaled scores because of the queries and keys, (1, heads, tokens, d_k):
/// (heads, q_len, kv_len).
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
};

/// What multiplies the bias of a head's query: a (b c - 1) + 2, where a and b are the sigmoids of
/// the sums of the first and the last four outputs of the head's part of x (WavLM).
struct BiasGate {
    LinearMap map;                  ///< of one head's columns, to 8
    std::vector<double> constants;  ///< c, by head
};

/// Queries, keys and values from narrow latents. Per head, `key_up` gives the first columns of the
/// key and then the value; the key's last columns are shared by all heads.
struct LatentPart {
    LinearMap query_down;                ///< absent: queries are of the input
    std::optional<NormSpec> query_norm;  ///< of the query's latent
    LinearMap key_down;                  ///< the latent, then the shared columns
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
    /// 1 where a query may attend to a key, (tokens, past + tokens). `latent` is that of queries.
    virtual Array<double> run(BlockRun<float>& run, const Tensor3<float>& x,
                              const Tensor3<float>& latent) const = 0;
    virtual Array<double> run(BlockRun<double>& run, const Tensor3<double>& x,
                              const Tensor3<double>& latent) const = 0;
};

/// Softmax attention with its projections.
struct AttentionPart {
    std::size_t heads = 1, kv_heads = 1, d_k = 0, d_v = 0;  ///< widths of one head
    JoinedHeads joined = JoinedHeads::separate;
    std::size_t joined_blocks = 1;
    LinearMap query, key, value;  ///< all of them in `query` if they are joined
    LinearMap out;
    bool value_is_key = false;  ///< values are the keys before their norm and rotation
    /// Keys and values are those of this earlier layer; there are no projections of them.
    std::optional<std::size_t> shared_from;
    bool is_shared = false;  ///< a later layer takes them
    double clip = 0;         ///< projections are clipped to [-clip, clip]; 0: not

    std::optional<NormSpec> query_norm, key_norm, value_norm;
    bool norms_whole = false;  ///< the norms are over all heads together, not over each
    bool norms_after_rotation = false;
    std::optional<Rotation> rotation;
    /// A factor on the query at a position, after its rotation; null: 1.
    std::function<double(std::size_t position)> query_factor;

    double scale = 1, softcap = 0;
    bool causal = true;
    std::optional<std::int64_t> window_left, window_right;  ///< inclusive distances
    std::optional<std::uint64_t> chunk;  ///< tokens attend within chunks of this length only
    std::vector<double> sink;
    /// Added to the scaled scores: (heads, q_len, kv_len) for the first query position and lengths;
    /// null: nothing.
    std::function<Array<double>(std::size_t first_query, std::size_t q_len, std::size_t kv_len)>
        bias;
    ContextGate gate;
    std::optional<NormSpec> out_norm;  ///< of the concatenated heads, or of each
    bool out_norm_per_head = false;
    bool clips_after_norm = false;  ///< `clip` is of normed queries and keys
    double value_scale = 1;         ///< on values
    std::optional<KeyBias> key_bias;
    /// Values of heads i and i + half lie together in each key head; the second half's context,
    /// times this, is taken from the first half's.
    std::optional<double> difference;
    bool rotates_values = false;                      ///< as queries and keys
    std::shared_ptr<const ContentBias> content_bias;  ///< instead of `bias`; null: nothing

    /// Keys and values of the encoder's states, by the same projections, precede the own ones.
    bool joins_encoder = false;
    std::optional<BiasGate> bias_gate;        ///< on the rows of `bias`
    bool averages_weights = false;            ///< all heads' recorded weights are their mean
    std::optional<LatentPart> latent;         ///< `query` is then of the query's latent
    std::shared_ptr<const KeyChoice> choice;  ///< null: all keys that masks allow
};

/// Gated or plain feed-forward part: down(act(gate x) * up x), or down(act(up x)).
struct FeedForward {
    LinearMap gate, up, down;
    enum class Joined { no, gate_first, up_first, interleaved } joined = Joined::no;  ///< in `up`
    const Activation* activation = nullptr;
    double limit = 0;                    ///< gate at most this, up within it; 0: not
    double alpha = 0;                    ///< with it, the activation is x sigmoid(alpha x)
    double up_offset = 0;                ///< added to up
    std::optional<NormSpec> inner_norm;  ///< before `down`
    double sparsity_z = 0;               ///< gate less mean + z deviations, at least 0; 0: not
    bool is_sparse = false;
    std::vector<double> activation_numbers;  ///< of xIELU
};

/// Experts, of which each token takes the best.
struct Experts {
    enum class Scores { softmax, sigmoid, sqrt_softplus, softmax_of_chosen, one_by_one };
    LinearMap router;
    Scores scores = Scores::softmax;
    std::vector<double> choice_bias;   ///< added for the choice alone
    std::vector<double> expert_scale;  ///< on the weights of each expert
    std::size_t count = 0, chosen = 0, groups = 1, chosen_groups = 1;
    bool groups_by_best = false;  ///< a group's score is its best one, else the sum of its best two
    bool normalise = false;
    double sum_eps = 0, factor = 1;
    bool scales_input = false;  ///< weights multiply the expert's input, not its output
    std::function<FeedForward(std::size_t expert)> expert;
    std::optional<FeedForward> shared;
    LinearMap shared_gate;
    std::optional<NormSpec> router_norm;  ///< of the router's input
    std::vector<double> router_scale;     ///< on the columns of the router's input
    /// Replaces the choice of experts by a table, (tokens); empty: the best.
    std::vector<std::vector<std::size_t>> by_token;
    double sum_least = 0;      ///< the sum is at least this
    double tolerance = 0;      ///< of Scores::one_by_one: the relative distance of what counts
    double norm_power = 1;     ///< `normalise` divides by the norm of this power
    double shared_factor = 1;  ///< on the output of the shared expert
};

struct TransformerBlock;

/// A mixer of tokens that is not softmax attention: (1, tokens, width) to the same shape.
class OtherMixer {
public:
    OtherMixer() = default;
    OtherMixer(const OtherMixer&) = delete;
    OtherMixer& operator=(const OtherMixer&) = delete;
    virtual ~OtherMixer() = default;
    virtual Tensor3<float> run(BlockRun<float>& run, const Tensor3<float>& x) const = 0;
    virtual Tensor3<double> run(BlockRun<double>& run, const Tensor3<double>& x) const = 0;
};

/// Where the parts of a block add to the residual.
enum class BlockOrder {
    sequential,  ///< x += attention, then x += feed-forward
    parallel     ///< x += attention + feed-forward of the same x
};

struct TransformerBlock {
    std::size_t layer = 0;
    BlockOrder order = BlockOrder::sequential;
    /// Before each part; after it, before the sum; and after the sum (BERT).
    std::optional<NormSpec> attention_norm, attention_post_norm, attention_sum_norm;
    std::optional<NormSpec> ffn_norm, ffn_post_norm, ffn_sum_norm;
    bool ffn_shares_norm = false;  ///< parallel: the feed-forward part takes attention's normed x
    double residual_factor = 1;    ///< on what is added
    double skip_factor = 1;        ///< on x itself, at both sums
    std::vector<double> attention_scale, ffn_scale;  ///< per column, on what is added (LayerScale)
    bool residual_is_normed = false;                 ///< x itself is replaced by the normed x

    std::variant<AttentionPart, std::shared_ptr<const OtherMixer>> mixer;
    std::optional<AttentionPart> cross;  ///< after the mixer, to the encoder's states
    std::optional<NormSpec> cross_norm, cross_sum_norm;

    std::variant<std::monostate, FeedForward, Experts> ffn;
    std::optional<FeedForward> dense;  ///< next to the experts, added to their output

    /// Computes the block alone, if not null: for blocks of another structure.
    std::shared_ptr<const OtherMixer> whole;
    std::vector<double> attention_skip, ffn_skip;  ///< per column, on x at the sums; empty: 1

    std::optional<NormSpec> cross_post_norm;  ///< of what the cross attention adds
    std::optional<NormSpec> adapter_norm;
    std::optional<FeedForward> adapter;  ///< after the feed-forward part, with a residual
    /// Takes the block's result and gives another; null: nothing.
    std::shared_ptr<const OtherMixer> after;
    /// Experts take the normed residual, and norms are on the outputs before their sum (Gemma 4).
    std::optional<NormSpec> expert_norm, expert_post_norm, dense_post_norm;
};

}  // namespace attn
