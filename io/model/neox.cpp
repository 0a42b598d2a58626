// GPT-NeoX and Pythia: transformers' GPTNeoXAttention and GPTNeoXConfig.
#include "io/model/family.hpp"

namespace attn::io {
namespace {

constexpr HarmlessTensor neox_buffers[] = {causal_buffer, masked_score, rotary_buffer};

constexpr LayerNames neox_layers[] = {{.layer = "layers.#.attention.",
                                       .packing = Packing::by_group,
                                       .query = {"query_key_value.weight", "query_key_value.bias"},
                                       .out = {"dense.weight", "dense.bias"},
                                       .others = neox_buffers}};

constexpr ConfigKey neox_keys[] = {{"attention_bias"}, {"is_causal", "[true]"}};

constexpr ModelType neox_types[] = {
    {.name = "gpt_neox",
     .eps = "layer_norm_eps",
     .rope = {.base = "rotary_emb_base", .part = "rotary_pct", .default_part = 0.25},
     .biases = {.inputs = true, .out = true, .from_config = true},
     .others = neox_keys}};

}  // namespace

namespace families {
extern constinit const Family neox{.name = "neox",
                                   .published = "gpt_neox.",
                                   .layers = neox_layers,
                                   .norm = "layers.#.input_layernorm",
                                   .embedding = {.ids = "embed_in.weight"},
                                   .eps = 1e-5,
                                   .rotates = Rotates::part_of_heads,
                                   .model_types = neox_types};
}  // namespace families

}  // namespace attn::io
