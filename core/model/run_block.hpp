// Runs one block on the hidden states of a sequence.
#pragma once

#include <algorithm>
#include <map>

#include "core/model/block.hpp"
#include "core/model/products.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// Keys and values of one layer, (kv_heads, tokens, d).
struct KeysAndValues {
    States key, value;
    Array<double> chosen = {};  ///< by an indexer whose choice later layers use
};

/// The state of a layer after earlier tokens, from which later tokens continue.
struct LayerCache {
    KeysAndValues attention;
    States state;                   ///< of a recurrence, (heads, d_k, d_v)
    std::vector<States> last_rows;  ///< last inputs of convolutions, (1, taps - 1, channels)
    KeysAndValues cross;            ///< from the encoder's states
    States index_key;               ///< of an indexer, (1, tokens, d)
};

/// A softmax attention that was computed, for the description of its layer in a result.
struct LayerAttention {
    std::string part;        ///< the prefix of its arrays: "encoder_", "decoder_", "cross_" or none
    Plan plan;               ///< of the operator, after the rotary embedding
    RopeSettings rope = {};  ///< 0 columns: no rotation; base 0: it does not give the frequencies
    std::size_t layer = 0;
    std::shared_ptr<const Mask> mask = {};  ///< the keys that each query may attend to
};

/// The arrays to record in each layer, by their names in `all_arrays`.
struct ArrayRequest {
    std::vector<std::string> names;
    std::vector<std::uint64_t> heads;  ///< empty: all
    bool requires_head = false;        ///< logits of a model without a head are an error
    bool has(std::string_view name) const {
        return std::find(names.begin(), names.end(), name) != names.end();
    }
};

/// One run of a block: its input, the state shared with other blocks, and the recorded arrays.
struct BlockRun {
    const Compute& compute;
    const TransformerBlock& block;
    const ArrayRequest& wanted;
    std::size_t past = 0;                       ///< number of earlier tokens, in the cache
    std::vector<double> positions = {};         ///< of these tokens, for the rotary embedding
    std::vector<std::uint64_t> token_ids = {};  ///< empty if the input has no token ids
    /// (past + tokens): whether a key may be attended to; empty: all.
    std::vector<bool> valid_keys = {};
    /// (tokens): the sequence of each, whose tokens alone it attends to; empty: one for all.
    std::vector<double> packed = {};
    LayerCache* cache = nullptr;                             ///< null: no later tokens
    std::map<std::size_t, KeysAndValues>* shared = nullptr;  ///< by layer
    const States* encoder = nullptr;  ///< the encoder's states, for cross-attention
    std::vector<bool> valid_encoder_keys = {};
    std::string prefix = {};              ///< of the names of recorded arrays, as "decoder_"
    std::vector<NamedArray> arrays = {};  ///< recorded, without the layer's number
    std::vector<LayerAttention> attentions = {};  ///< the same
    /// The input of block 0 for these tokens, in the first of several streams; null: not kept.
    const States* embedding = nullptr;

    /// Records a copy of x if it is wanted; with two axes, of its rows and columns.
    void record(std::string_view name, const States& x, std::vector<std::string_view> axes);
    /// Whether the lists of tokens allow the query to attend to the key.
    bool allows(std::size_t query, std::size_t key) const {
        return (valid_keys.empty() || valid_keys[key]) &&
               (packed.empty() || packed[query] == packed[key]);
    }
    /// x with zeros in the rows of tokens that the attention mask excludes.
    States valid_rows(States x) const;
    /// The keys and values of an earlier layer. Errors: SettingError if it did not run.
    const KeysAndValues& made_by(std::size_t layer) const;
};

/// The hidden states after the block, given x, (1, tokens, width) or its streams.
States run_block(BlockRun& run, States x);

/// Errors: kind input unless y, the output of `what`, has so many columns.
void check_width(const std::string& what, const States& y, std::size_t width);

/// The parts of a block keep the shape of x, (1, tokens, width).
/// `source` is null but for cross-attention, whose keys and values it gives.
States run_part(BlockRun& run, const AttentionPart& part, const States& x,
                const States* source = nullptr);
States run_part(BlockRun& run, const DeltaPart& part, const States& given);
States run_part(BlockRun& run, const ShortConvolutionPart& part, const States& x);
States run_part(BlockRun& run, const StateSpacePart& part, const States& given);
States run_part(BlockRun& run, const StreamsBlock& part, const States& x);
States run_part(BlockRun& run, const HyperBlock& part, const States& x);
States run_feed_forward(const Compute& compute, const FeedForward& part, const States& x);
/// `router_input` is the input of the router, which may differ from the input x of the experts.
States run_experts(const BlockRun& run, const Experts& part, const States& x,
                   const States& router_input);

/// What a per-layer input adds to x.
States term_of(const BlockRun& run, const LayerInput& part, const States& x);

/// What softmax attention takes besides its part.
struct HeadInputs {
    States query, key, value;  ///< (heads, tokens, d)
    /// 1 where a query may attend to a key, in addition to the masks of the part; empty: all.
    Array<double> allowed = {};
    Array<double> bias = {};  ///< added to the scaled scores, (heads, q_len, kv_len); may be empty
    bool is_cross = false;
    std::size_t before = 0;  ///< the number of first keys that are the encoder's
};

/// Softmax attention on heads, to (1, tokens, heads * d_v). Records its arrays.
States attend_heads(BlockRun& run, const AttentionPart& part, HeadInputs heads);

/// Records x, the queries or keys of a layer of `heads` heads: those of the chosen heads.
/// `rows`: the name of the axis of tokens. Errors: SettingError for a head that there is not.
void record_heads(BlockRun& run, std::string_view name, const States& x, std::size_t heads,
                  std::string_view rows);

/// Rotates columns of each head of x, (heads, tokens, d), in place.
void rotate(const Rotation& rotation, const std::vector<double>& positions, States& x,
            bool backwards = false);

/// Queries, keys and values, (1, tokens, heads * d).
struct Projected {
    States query, key, value, gate;
    States latent;  ///< of the queries
};

/// Projects x, (1, tokens, width), to queries, and its source to keys and values. The source is x
/// except in cross-attention. Without `has_keys`, only queries.
Projected project_heads(const Compute& compute, const AttentionPart& part, const States& x,
                        const States& source, bool has_keys);

/// 1 for the keys that an indexer chooses for each query, (tokens, past + tokens). `latent` is the
/// latent of the queries.
Array<double> chosen_keys(BlockRun& run, const IndexerPart& part, const States& x,
                          const States& latent);

/// The indices of the `count` largest scores, in order, the first of equal ones first.
std::vector<std::size_t> best(std::span<const double> scores, std::size_t count);

/// The indices of the `count` largest scores in any order; among equal scores, those that
/// torch.topk chooses. Keys with -Infinity are masked and left out.
std::vector<std::size_t> indices_of_largest(const std::vector<double>& scores, std::size_t count);

/// A bias on the scores of heads, (heads, q_len, kv_len), or nothing. `x` is the input of the
/// attention.
Array<double> score_bias(BlockRun& run, const AttentionPart& part, const States& x,
                         const HeadInputs& heads);
/// 1 where a query may attend to a key by chunks, windows of joined keys and valid tokens; empty:
/// everywhere.
Array<double> allowed_keys(const BlockRun& run, const AttentionPart& part, const HeadInputs& heads);

}  // namespace attn
