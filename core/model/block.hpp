// One block of a transformer: its parts, its parameters, and how they are connected.
#pragma once

#include <span>
#include <string_view>

#include "core/model/attention_part.hpp"

namespace attn {

/// The activation functions of feed-forward layers, one row each, by their names in transformers.
struct Activation {
    std::string_view name;
    double (*of)(double x);
};

/// All functions, in the order in which errors list them.
std::span<const Activation> activations();

/// The function with this name, or null.
const Activation* find_activation(std::string_view name);

double sigmoid(double x);
double silu(double x);
double softplus(double x);  ///< log(1 + e^x); x if x > 20, as in torch.nn.functional.softplus

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

/// A depthwise causal convolution.
struct ShortConvolution {
    std::vector<Parameter> weights;  ///< (channels, 1, taps) each, concatenated
    Parameter bias = nullptr;
    std::size_t taps = 1;
    const Activation* activation = nullptr;  ///< null: none
};

/// Linear attention by the delta rule with decay; see core/linear/linear.hpp.
struct DeltaPart {
    std::size_t key_heads = 1, value_heads = 1, d_k = 0, d_v = 0;
    /// Their concatenated outputs are queries, keys and values, then gates if `gate` is empty.
    std::vector<LinearMap> inputs;
    std::vector<std::size_t> input_order;  ///< source column of each output; empty: unchanged
    ShortConvolution convolution;          ///< of queries, keys and values
    std::vector<LinearMap> gate, decay;    ///< applied one after the other
    LinearMap beta;                        ///< if `decay` is empty: beta, then the decay's input
    std::vector<std::size_t> beta_order;
    double beta_factor = 1;
    /// decay_log per head; decay_bias per head or per key column.
    std::vector<double> decay_log, decay_bias;
    std::optional<double> least_decay;  ///< factor on a sigmoid; null: -softplus
    NormSpec norm;                      ///< on each head's output
    bool gate_is_silu = true;
    LinearMap out;
};

/// [b, c, u] = input x; out (c * convolution(b * u)).
struct ShortConvolutionPart {
    LinearMap input, out;
    ShortConvolution convolution;
};

/// Mamba 2 (Dao and Gu 2024, arXiv 2405.21060). Each head has a state of d x states elements, which
/// decays by exp(time step * rate). Groups of heads share the vectors that write and read it.
struct StateSpacePart {
    std::size_t heads = 1, d = 0, groups = 1, states = 0;
    LinearMap input;               ///< gates, values, writing and reading vectors, time steps
    ShortConvolution convolution;  ///< of all but gates and steps
    std::vector<double> step_bias, rate_log, direct;  ///< per head
    double least_step = 0, largest_step = 0;          ///< largest_step 0: no limit
    NormSpec norm;                                    ///< on each group's gated output
    LinearMap out;
};

/// A convolution over the block's input, (output channels, input channels per group, taps). Its
/// activation is added to the block's output, then the norm is applied.
struct TokenConvolution {
    LinearMap map;  ///< of the concatenated rows around a token
    std::size_t taps = 1;
    const Activation* activation = nullptr;
    NormSpec norm;
};

/// A per-layer input (Gemma 3n and 4): the layer's columns of an embedding table, and a projection
/// of the embedding.
struct LayerInput {
    Parameter table;  ///< (vocabulary, layers * width)
    std::size_t first = 0, width = 0;
    bool first_if_beyond = false;  ///< ids beyond the table use row 0
    LinearMap projection;          ///< of the embedding, to `width`
    NormSpec projection_norm;
    LinearMap gate, out;  ///< out(activation(gate x) * input)
    const Activation* activation = nullptr;
    NormSpec out_norm;
};

/// A block on several streams that computes only the active one (AltUp, Baykal et al. 2023).
struct StreamsBlock {
    std::size_t streams = 1, active = 0;
    NormSpec router_norm;
    LinearMap router, prediction, correction;
    std::vector<double> output_scale;  ///< on the input of the per-layer term; empty: 1
    NormSpec attention_norm, attention_post_norm, ffn_norm, ffn_post_norm;
    LinearMap left, right;  ///< LAuReL
    NormSpec left_right_norm;
    AttentionPart attention;
    FeedForward ffn;
    LayerInput input;
};

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

/// DeepSeek V4's block: hyper-connected streams, and attention to compressed keys.
struct HyperBlock {
    HyperConnection attention_streams, ffn_streams;
    NormSpec attention_norm, ffn_norm;
    CompressedAttention attention;
    Experts ffn;
    Parameter experts_of_ids;  ///< (vocabulary, chosen); null: the best experts
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

    std::variant<AttentionPart, DeltaPart, ShortConvolutionPart, StateSpacePart> mixer;
    std::optional<AttentionPart>
        cross;  ///< cross-attention to the encoder's states, after the mixer
    std::optional<NormSpec> cross_norm, cross_sum_norm;

    std::variant<std::monostate, FeedForward, Experts> ffn;
    std::optional<FeedForward> dense;  ///< next to the experts, added to their output

    /// The whole block, if it has another structure.
    std::variant<std::monostate, StreamsBlock, HyperBlock> whole;
    std::vector<double> attention_skip, ffn_skip;  ///< per column, on the residual; empty: 1

    std::optional<NormSpec> cross_post_norm;  ///< on the output of cross-attention
    std::optional<NormSpec> adapter_norm;
    std::optional<FeedForward> adapter;           ///< after the feed-forward layer, with a residual
    std::optional<TokenConvolution> convolution;  ///< of the block's input, added to its output
    std::optional<LayerInput> layer_input;        ///< added to the block's output
    double output_scale = 1;                      ///< on the sum of both
    /// Norms on the experts' input, their output and the output of `dense`, before the sum (Gemma
    /// 4).
    std::optional<NormSpec> expert_norm, expert_post_norm, dense_post_norm;
};

}  // namespace attn
