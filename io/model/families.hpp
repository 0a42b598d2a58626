// The properties of layers that are found by the names of their tensors alone, without a config.
// layer_families.json has them under the names of the fields here. A module instead of a
// projection's names has the tensors "weight" and "bias"; a form with several values of "layer"
// applies to each of them, and those of "heads.#." are wrappers, which have no norms. Sources:
// transformers' GPT2Attention, LlamaAttention, BertAttention and GPTNeoXAttention, Meta's
// llama/model.py, modeling_internlm2.py, modeling_baichuan.py and modeling_chatglm.py (ChatGLM2 and
// later) of the models on Hugging Face's hub, timm's vision_transformer.py,
// torch.nn.MultiheadAttention, the notebooks' classes (SelfAttention_v1 and v2, CausalAttention,
// MultiHeadAttention and its wrapper), and the classes that attn help model names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/operator/choices.hpp"

namespace attn {
enum class JoinedHeads;
}  // namespace attn

namespace attn::io {

struct ProjectionNames {
    std::string weight = {}, bias = {};
    bool stacks = false;      ///< may hold independent heads too: (heads, rows, columns)
    bool needs_bias = false;  ///< the form has the bias
};

/// The heads in weights of rank 3: (heads, d_in, d_head) or (d_in, heads, d_head). Biases are
/// (heads, d_head), the output projection is (heads, d_head, d_out).
enum class HeadAxis { none, first, second };

/// The contents that a tensor of this name must have.
enum class Form {
    any,
    lower_mask,  ///< (..., n, n): nonzero where a query may attend, up to the diagonal
    upper_mask,  ///< (..., n, n): nonzero where it may not, above the diagonal
    one_number,  ///< the value of masked scores
    frequencies  ///< of the rotary embedding; see check_frequencies
};

/// A tensor of a layer that does not affect its attention: in older files the causal mask, the
/// value of masked scores and the frequencies of the rotary embedding; BERT's norm after the
/// residual.
struct HarmlessTensor {
    std::string_view name;
    Form form = Form::any;
};

/// One form of a family's layers. Names are relative to the layer's name, `layer`.
struct LayerNames {
    std::string_view layer = {};  ///< '#' is a number: the layer's, or of a head in a wrapper
    JoinedHeads joined{};         ///< separate, or of one tensor
    bool in_out = false;          ///< weights are (d_in, d_out), else (d_out, d_in)
    bool is_open = false;         ///< ... unless attn's metadata or the query specify it
    bool joins_bias = false;      ///< one bias for q, k and v, though the weights are separate
    bool is_wrapper = false;      ///< independent heads
    bool needs_out = true;        ///< always has an output projection
    /// A key and a value of one name are in one tensor, the keys first.
    ProjectionNames query = {}, key = {}, value = {}, out = {};
    std::vector<HarmlessTensor> others = {};
    bool shows_in_out = false;  ///< a joined weight with 3 times as many rows is (d_out, d_in)
    /// Norms of heads, before the rotation: modules with "weight" and "bias", or "scale" and
    /// "shift".
    std::string_view query_norm = {}, key_norm = {};
    std::string_view more_key = {}, more_value = {};  ///< a key and value that all queries see
    HeadAxis head_axis = HeadAxis::none;
    bool some_biases = false;  ///< of queries, keys and values some may lack the bias
    bool lacks_bias = false;   ///< the query has no bias
    bool asks_joined = false;  ///< programs differ in `joined`: --qkv-layout specifies it
};

/// The part of queries and keys that is rotated.
enum class Rotates {
    none,
    heads,         ///< all of each head
    part_of_heads  ///< the dimensions of the config or --rope-dims
};

/// Tables that are added up for each token; none without `ids`.
struct EmbeddingNames {
    std::string_view module = {};  ///< the module of all of them; empty: each in its own
    std::string_view ids = {}, positions = {}, segments = {};
    std::string_view norm = {};  ///< after them
};

struct Family {
    std::string_view name;
    std::string_view published = {};  ///< the prefix of `layer` in published files
    std::vector<LayerNames> layers;   ///< errors show the first
    std::string_view norm = {};       ///< of the layer's input, '#' its number; empty: none
    EmbeddingNames embedding = {};
    double eps = 0;    ///< of the norms, unless a config gives it
    bool rms = false;  ///< the norm is an RMS norm
    bool causal = true;
    Rotates rotates = Rotates::none;
    Rope pairs = Rope::half;      ///< usual, if it rotates
    bool is_plain = false;        ///< no rotation, and the usual scale
    bool is_plain_alone = false;  ///< ... if the names have no prefix; models have them too
    bool takes_mask = false;      ///< its class has no mask unless it is given one
    bool of_class = false;        ///< in any module, where no other family's layer is complete
    bool is_given = false;        ///< by --weight-names, not in the table
    bool biases_all = false;      ///< all projections of a layer have a bias, or none
    /// Values of model_type whose embeddings and norms these are; empty: it has no config.json.
    std::vector<std::string_view> types = {};
    std::string_view padded = {};  ///< the type whose positions begin after those of padding
};

/// The families of published models, in the order of help.
const std::vector<Family>& all_families();

/// The family of this name, or null.
const Family* find_family(std::string_view name);

/// The family whose names models of this type have, or null.
const Family* family_of_type(std::string_view model_type);

/// Where queries, keys and values are in the tensors of a layer.
enum class Part { query, key, value };
inline constexpr Part all_parts[] = {Part::query, Part::key, Part::value};

/// `count` outputs from `from` on in the stored tensor are outputs from `to` on of the part.
struct OutputRange {
    std::size_t from, count, to;
};

/// The outputs of a part in a tensor of `outputs` outputs, which pieces_of divides. Each key head
/// serves heads / kv_heads query heads. `blocks`: the number of JoinedHeads::blocks.
std::vector<OutputRange> split_of(JoinedHeads joined, Part part, std::size_t outputs,
                                  std::size_t heads, std::size_t kv_heads, std::size_t blocks = 1);

/// The number of equal pieces that such a tensor consists of.
std::size_t pieces_of(JoinedHeads joined, std::size_t heads, std::size_t kv_heads);

}  // namespace attn::io
