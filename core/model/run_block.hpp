// Runs one block on the hidden states of a sequence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.hpp"
#include "core/base/named_array.hpp"
#include "core/model/block.hpp"
#include "core/model/products.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"

namespace attn {

/// Keys and values of one layer, (1, kv_heads, tokens, d).
template <class T>
struct KeysAndValues {
    Tensor4<T> key, value;
    Array<double> chosen = {};  ///< by a KeyChoice that later layers use
};

/// The state of a layer after earlier tokens, from which later tokens continue.
template <class T>
struct LayerCache {
    KeysAndValues<T> attention;
    Tensor4<T> state;                   ///< of a recurrence, (1, heads, d_k, d_v)
    std::vector<Tensor3<T>> last_rows;  ///< last inputs of convolutions, (1, taps - 1, channels)
    KeysAndValues<T> cross;             ///< from the encoder's states
    Tensor4<T> index_key;               ///< of an indexer, (1, 1, tokens, d)
};

/// A softmax attention that was computed, for the description of its layer in a result.
struct LayerAttention {
    std::string part;  ///< the prefix of its arrays: "encoder_", "decoder_", "cross_" or none
    Plan plan;         ///< of the operator, after the rotary embedding
    /// Of the first queries and keys of each head; 0 columns: no rotation. The base is set if it
    /// gives the frequencies.
    Rope rope_pairs = Rope::half;
    std::size_t rope_dims = 0;
    std::optional<double> rope_base = {};
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
template <class T>
struct BlockRun {
    BlockRun(const Compute& with, const TransformerBlock& of, const ArrayRequest& arrays_wanted)
        : compute(with), block(of), wanted(arrays_wanted) {}

    const Compute& compute;
    const TransformerBlock& block;
    const ArrayRequest& wanted;
    std::size_t past = 0;                  ///< number of earlier tokens, in the cache
    std::vector<double> positions;         ///< of these tokens, for the rotary embedding
    std::vector<std::uint64_t> token_ids;  ///< empty if the input has no token ids
    /// (past + tokens): whether a key may be attended to; empty: all.
    std::vector<bool> valid_keys;
    LayerCache<T>* cache = nullptr;                             ///< null: no later tokens
    std::map<std::size_t, KeysAndValues<T>>* shared = nullptr;  ///< by layer
    const Tensor3<T>* encoder = nullptr;  ///< the encoder's states, for cross-attention
    std::vector<bool> valid_encoder_keys;
    std::string prefix;              ///< of the names of recorded arrays, as "decoder_"
    std::vector<NamedArray> arrays;  ///< recorded, without the layer's number
    std::vector<LayerAttention> attentions = {};  ///< the same
    /// The input of block 0 for these tokens, in the first of several streams; null: not kept.
    const Tensor3<T>* embedding = nullptr;

    void record(std::string_view name, Array<T> values, std::vector<std::string_view> axes) {
        arrays.push_back({prefix + std::string(name), std::move(values), std::move(axes), {}});
    }
};

/// The hidden states after the block, given x, (1, tokens, width).
template <class T>
Tensor3<T> run_block(BlockRun<T>& run, Tensor3<T> x);

/// Attention of x to `source`, with the output projection. `source` is x except in cross-attention.
/// Records arrays; a `weights_name` that is not empty replaces "attention_weights".
template <class T>
Tensor3<T> run_attention(BlockRun<T>& run, const AttentionPart& part, const Tensor3<T>& x,
                         const Tensor3<T>* source, std::string_view weights_name = {});

/// Softmax attention on heads, (1, heads, tokens, d), to (1, tokens, heads * d_v). `allowed` is 1
/// where a query may attend to a key, in addition to the masks of the part; empty: all.
/// `bias` is added to the scaled scores, (heads, q_len, kv_len). The first `before` keys are the
/// encoder's.
template <class T>
Tensor3<T> attend_heads(BlockRun<T>& run, const AttentionPart& part, Tensor4<T> query,
                        Tensor4<T> key, Tensor4<T> value, const Array<double>& allowed,
                        bool is_cross = false, std::string_view weights_name = {},
                        Array<double> bias = {}, std::size_t before = 0);

template <class T>
Tensor3<T> run_feed_forward(const Compute& compute, const FeedForward& part, const Tensor3<T>& x);

/// `router_input` is the input of the router, which may differ from the input x of the experts.
template <class T>
Tensor3<T> run_experts(const BlockRun<T>& run, const Experts& part, const Tensor3<T>& x,
                       const Tensor3<T>& router_input);

/// Rotates columns of each head of x, (1, heads, tokens, d), in place.
template <class T>
void rotate(const Rotation& rotation, const std::vector<double>& positions, Tensor4<T>& x,
            bool backwards = false);

/// The keys and values of an earlier `layer`. Errors: SettingError if it did not run.
template <class T>
const KeysAndValues<T>& made_by(const BlockRun<T>& run, std::size_t layer);

/// Appends tokens to the heads of earlier tokens.
template <class T>
void append(Tensor4<T>& past, const Tensor4<T>& fresh);

}  // namespace attn
