// Layouts of programs whose files have no config.json of transformers, recognized by tensor names
// and shapes alone. Sources: Meta's llama/model.py, modeling_internlm2.py, modeling_baichuan.py and
// modeling_chatglm.py (ChatGLM2 and later) of the models on Hugging Face's hub, timm's
// vision_transformer.py.
#include "io/model/family.hpp"

namespace attn::io {
namespace {

constexpr HarmlessTensor meta_buffers[] = {{"inner_attention.rope.freqs", Form::frequencies}};

constexpr LayerNames meta_layers[] = {{.layer = "layers.#.attention.",
                                       .query = {"wq.weight", "wq.bias"},
                                       .key = {"wk.weight", "wk.bias"},
                                       .value = {"wv.weight", "wv.bias"},
                                       .out = {"wo.weight", "wo.bias"},
                                       .others = meta_buffers,
                                       .query_norm = "q_norm",
                                       .key_norm = "k_norm"}};

constexpr HarmlessTensor frequencies_only[] = {rotary_buffer};

constexpr LayerNames internlm2_layers[] = {{.layer = "layers.#.attention.",
                                            .packing = Packing::by_group,
                                            .query = {"wqkv.weight", "wqkv.bias"},
                                            .out = {"wo.weight", "wo.bias"},
                                            .others = frequencies_only}};

constexpr LayerNames baichuan_layers[] = {{.layer = "layers.#.self_attn.",
                                           .packing = Packing::joined,
                                           .query = {"W_pack.weight", "W_pack.bias"},
                                           .out = {"o_proj.weight", "o_proj.bias"},
                                           .others = frequencies_only}};

constexpr LayerNames chatglm_layers[] = {
    {.layer = "encoder.layers.#.self_attention.",
     .packing = Packing::joined,
     .query = {"query_key_value.weight", "query_key_value.bias"},
     .out = {"dense.weight", "dense.bias"}}};

/// Also the joined class of the notebooks' book, with the causal mask as a buffer.
constexpr HarmlessTensor joined_buffers[] = {{"mask", Form::upper_mask}};

constexpr LayerNames joined_names{.packing = Packing::joined,
                                  .query = {"qkv.weight", "qkv.bias"},
                                  .out = {"proj.weight", "proj.bias"},
                                  .others = joined_buffers,
                                  .query_norm = "q_norm",
                                  .key_norm = "k_norm"};

constexpr LayerNames in_blocks(LayerNames names) {
    names.layer = "blocks.#.attn.";
    return names;
}

constexpr LayerNames timm_layers[] = {in_blocks(joined_names), joined_names};

}  // namespace

namespace families {
extern constinit const Family meta{.name = "meta",
                                   .layers = meta_layers,
                                   .norm = "layers.#.attention_norm",
                                   .embedding = {.ids = "tok_embeddings.weight"},
                                   .eps = 1e-5,
                                   .rms = true,
                                   .rotates = Rotates::heads,
                                   .pairs = Rope::interleaved};
extern constinit const Family internlm2{.name = "internlm2",
                                        .published = "model.",
                                        .layers = internlm2_layers,
                                        .norm = "layers.#.attention_norm",
                                        .embedding = {.ids = "tok_embeddings.weight"},
                                        .eps = 1e-5,
                                        .rms = true,
                                        .rotates = Rotates::heads};
extern constinit const Family baichuan{.name = "baichuan",
                                       .published = "model.",
                                       .layers = baichuan_layers,
                                       .norm = "layers.#.input_layernorm",
                                       .embedding = {.ids = "embed_tokens.weight"},
                                       .eps = 1e-6,
                                       .rms = true,
                                       .rotates = Rotates::heads};
extern constinit const Family chatglm{
    .name = "chatglm",
    .published = "transformer.",
    .layers = chatglm_layers,
    .norm = "encoder.layers.#.input_layernorm",
    .embedding = {.module = "embedding.", .ids = "embedding.word_embeddings.weight"},
    .eps = 1e-5,
    .rms = true,
    .rotates = Rotates::part_of_heads,
    .pairs = Rope::interleaved};
extern constinit const Family timm{
    .name = "timm", .layers = timm_layers, .norm = "blocks.#.norm1", .eps = 1e-6, .causal = false};
}  // namespace families

}  // namespace attn::io
