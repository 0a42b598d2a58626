// Layouts that are recognized by tensor names and shapes alone. Sources: transformers'
// GPT2Attention, LlamaAttention, BertAttention and GPTNeoXAttention, Meta's llama/model.py,
// modeling_internlm2.py, modeling_baichuan.py and modeling_chatglm.py (ChatGLM2 and later) of the
// models on Hugging Face's hub, timm's vision_transformer.py.
#include "io/model/family.hpp"

namespace attn::io {
namespace {

constexpr HarmlessTensor gpt2_buffers[] = {causal_buffer, masked_score};

constexpr LayerNames gpt2_layers[] = {{.layer = "h.#.attn.",
                                       .packing = Packing::joined,
                                       .in_out = true,  // Conv1D
                                       .query = {"c_attn.weight", "c_attn.bias"},
                                       .out = {"c_proj.weight", "c_proj.bias"},
                                       .others = gpt2_buffers,
                                       .shows_in_out = true}};  // nanoGPT has nn.Linear

constexpr HarmlessTensor frequencies_only[] = {rotary_buffer};

constexpr LayerNames llama_layers[] = {{.layer = "layers.#.self_attn.",
                                        .query = {"q_proj.weight", "q_proj.bias"},
                                        .key = {"k_proj.weight", "k_proj.bias"},
                                        .value = {"v_proj.weight", "v_proj.bias"},
                                        .out = {"o_proj.weight", "o_proj.bias"},
                                        .others = frequencies_only,
                                        .query_norm = "q_norm",
                                        .key_norm = "k_norm"}};

/// After the residual, which is not part of the attention.
constexpr HarmlessTensor bert_norms[] = {{"output.LayerNorm.weight"},
                                         {"output.LayerNorm.bias"},
                                         {"output.LayerNorm.gamma"},
                                         {"output.LayerNorm.beta"}};

constexpr LayerNames bert_layers[] = {{.layer = "encoder.layer.#.attention.",
                                       .query = {"self.query.weight", "self.query.bias"},
                                       .key = {"self.key.weight", "self.key.bias"},
                                       .value = {"self.value.weight", "self.value.bias"},
                                       .out = {"output.dense.weight", "output.dense.bias"},
                                       .others = bert_norms}};

constexpr HarmlessTensor neox_buffers[] = {causal_buffer, masked_score, rotary_buffer};

constexpr LayerNames neox_layers[] = {{.layer = "layers.#.attention.",
                                       .packing = Packing::by_group,
                                       .query = {"query_key_value.weight", "query_key_value.bias"},
                                       .out = {"dense.weight", "dense.bias"},
                                       .others = neox_buffers}};

constexpr HarmlessTensor meta_buffers[] = {{"inner_attention.rope.freqs", Form::frequencies}};

constexpr LayerNames meta_layers[] = {{.layer = "layers.#.attention.",
                                       .query = {"wq.weight", "wq.bias"},
                                       .key = {"wk.weight", "wk.bias"},
                                       .value = {"wv.weight", "wv.bias"},
                                       .out = {"wo.weight", "wo.bias"},
                                       .others = meta_buffers,
                                       .query_norm = "q_norm",
                                       .key_norm = "k_norm"}};

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

constexpr std::string_view gpt2_types[] = {"gpt2"}, llama_types[] = {"llama", "mistral", "qwen2"},
                           bert_types[] = {"bert", "roberta", "xlm-roberta", "camembert"},
                           neox_types[] = {"gpt_neox"};

}  // namespace

namespace families {
extern constinit const Family gpt2{.name = "gpt2",
                                   .layers = gpt2_layers,
                                   .norm = "h.#.ln_1",
                                   .embedding = {.ids = "wte.weight", .positions = "wpe.weight"},
                                   .eps = 1e-5,
                                   .types = gpt2_types};
extern constinit const Family llama{.name = "llama",
                                    .published = "model.",
                                    .layers = llama_layers,
                                    .norm = "layers.#.input_layernorm",
                                    .embedding = {.ids = "embed_tokens.weight"},
                                    .eps = 1e-6,
                                    .rms = true,
                                    .rotates = Rotates::heads,
                                    .types = llama_types};
extern constinit const Family bert{
    .name = "bert",
    .published = "bert.",
    .layers = bert_layers,
    .embedding = {.module = "embeddings.",
                  .ids = "embeddings.word_embeddings.weight",
                  .positions = "embeddings.position_embeddings.weight",
                  .segments = "embeddings.token_type_embeddings.weight",
                  .norm = "embeddings.LayerNorm"},
    .eps = 1e-12,
    .causal = false,
    .types = bert_types,
    .padded = "roberta"};
extern constinit const Family neox{.name = "neox",
                                   .published = "gpt_neox.",
                                   .layers = neox_layers,
                                   .norm = "layers.#.input_layernorm",
                                   .embedding = {.ids = "embed_in.weight"},
                                   .eps = 1e-5,
                                   .rotates = Rotates::part_of_heads,
                                   .types = neox_types};
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
