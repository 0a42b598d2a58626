// What is known of a family of published models: how it names the tensors of its attention layers,
// what it computes, and what its config.json says. Each family stands in the file of its name;
// families.hpp lists them. Sources: Hugging Face transformers' modules and configuration classes,
// torch.nn.MultiheadAttention, the notebooks.
#pragma once

#include <span>
#include <string_view>

namespace attn::io {

class ConfigReader;

/// How queries, keys and values lie in their tensors.
enum class Packing {
    separate,  ///< one tensor each
    joined,    ///< one tensor: outputs of q, then of k, then of v
    by_head    ///< one tensor: q, k, v of head 0, then of head 1
};

struct ProjectionNames {
    std::string_view weight = {}, bias = {};
    bool stacks = false;  ///< may hold independent heads too: (heads, rows, columns)
};

/// What a tensor must look like to be the one that is meant by its name.
enum class Form {
    any,
    lower_mask,  ///< (..., n, n): not 0 where a query may attend, up to the diagonal
    upper_mask,  ///< (..., n, n): not 0 where it may not, beyond the diagonal
    one_number,  ///< what masked scores were replaced with
    frequencies  ///< of the rotary embedding; see check_frequencies
};

/// A tensor of a layer that does not change what its attention computes.
struct HarmlessTensor {
    std::string_view name;
    Form form = Form::any;
};

/// One form of a family's layers. Names are relative to the layer's own, `layer`.
struct LayerNames {
    std::string_view layer = {};  ///< '#' is a number: the layer's, or of a head in a wrapper
    Packing packing = Packing::separate;
    bool in_out = false;      ///< weights are (d_in, d_out), else (d_out, d_in)
    bool is_open = false;     ///< ... unless attn's metadata or the query says otherwise
    bool joins_bias = false;  ///< one bias for q, k and v, though the weights are separate
    bool is_wrapper = false;  ///< independent heads
    bool needs_out = true;    ///< always has an output projection
    ProjectionNames query = {}, key = {}, value = {}, out = {};
    std::span<const HarmlessTensor> others = {};
};

/// What older files hold beside the parameters: the causal mask, the number that masked scores
/// become, the frequencies of the rotary embedding.
inline constexpr HarmlessTensor causal_buffer{"bias", Form::lower_mask},
    masked_score{"masked_bias", Form::one_number},
    rotary_buffer{"rotary_emb.inv_freq", Form::frequencies};

/// A key of config.json that changes nothing in the attention, or nothing while it has one of these
/// values.
struct ConfigKey {
    std::string_view name;
    std::string_view values = {};  ///< as a JSON list; empty: any
};

/// Which projections have a bias; `said`: unless attention_bias says otherwise of all of them.
struct Biases {
    bool inputs = false, out = false, said = false;
};

/// The keys of the rotary embedding; without `base` there is none.
struct RopeKeys {
    std::string_view base = {}, part = "partial_rotary_factor";
    double default_part = 1;  ///< of a head that is rotated
};

/// Which layers see no further back than sliding_window says.
enum class Windows {
    none,
    all,   ///< where sliding_window is a number
    upper  ///< where use_sliding_window is on: from max_window_layers on, or by layer_types
};

/// One value of model_type: what its configuration class calls the settings, and means by them.
struct ModelType {
    std::string_view name;
    std::string_view prefix = {};  ///< of its published tensors, where it is not the family's
    std::string_view heads = "num_attention_heads", kv_heads = {}, width = "hidden_size", eps = {};
    RopeKeys rope = {};
    Windows windows = Windows::none;
    Biases biases = {};
    bool has_padding_positions = false;      ///< the first token's position is pad_token_id + 1
    std::span<const ConfigKey> others = {};  ///< that it has, or other programs give it
    void (*read_others)(ConfigReader&) = nullptr;  ///< those that are settings
};

/// What of queries and keys is rotated by their position.
enum class Rotates {
    none,
    heads,         ///< all of each head
    part_of_heads  ///< as much as the config or --rope-dims says
};

/// Tables that are added up for each token; without `ids` there are none.
struct EmbeddingNames {
    std::string_view module = {};  ///< that all of them are in; empty: each in its own
    std::string_view ids = {}, positions = {}, segments = {};
    std::string_view norm = {};  ///< after them
};

struct Family {
    std::string_view name;
    std::string_view published = {};     ///< what stands before `layer` in published files
    std::span<const LayerNames> layers;  ///< the first is the one that errors show
    std::string_view norm = {};          ///< of the layer's input, '#' its number; empty: none
    EmbeddingNames embedding = {};
    double eps = 0;    ///< of the norms, unless a config says it
    bool rms = false;  ///< the norm is by the root mean square
    bool causal = true;
    Rotates rotates = Rotates::none;
    std::span<const ModelType> model_types = {};  ///< empty: it has no config.json
};

}  // namespace attn::io
