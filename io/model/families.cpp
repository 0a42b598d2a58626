// Layouts that are recognized by tensor names and shapes alone. Sources: transformers'
// GPT2Attention, LlamaAttention, BertAttention and GPTNeoXAttention, Meta's llama/model.py,
// modeling_internlm2.py, modeling_baichuan.py and modeling_chatglm.py (ChatGLM2 and later) of the
// models on Hugging Face's hub, timm's vision_transformer.py, torch.nn.MultiheadAttention, the
// notebooks.
#include "io/model/families.hpp"

#include <algorithm>
#include <numeric>

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

/// Also the notebooks' classes, which register the causal mask with 1 for masked keys.
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

/// nn.MultiheadAttention stores the projections separately if their inputs differ in width.
constexpr LayerNames mha_layers[] = {{.packing = Packing::joined,
                                      .query = {"in_proj_weight", "in_proj_bias"},
                                      .out = {"out_proj.weight", "out_proj.bias"},
                                      .more_key = "bias_k",
                                      .more_value = "bias_v"},
                                     {.joins_bias = true,
                                      .query = {"q_proj_weight", "in_proj_bias"},
                                      .key = {"k_proj_weight", "in_proj_bias"},
                                      .value = {"v_proj_weight", "in_proj_bias"},
                                      .out = {"out_proj.weight", "out_proj.bias"},
                                      .more_key = "bias_k",
                                      .more_value = "bias_v"}};

// The notebooks' classes (SelfAttention_v1 and v2, CausalAttention, MultiHeadAttention and its
// wrapper), and attn's own arrays.

/// As nn.Linear.
constexpr LayerNames linear_names{.needs_out = false,
                                  .query = {"W_query.weight", "W_query.bias", true},
                                  .key = {"W_key.weight", "W_key.bias", true},
                                  .value = {"W_value.weight", "W_value.bias", true},
                                  .out = {"out_proj.weight", "out_proj.bias"},
                                  .others = joined_buffers,
                                  .query_norm = "q_norm",
                                  .key_norm = "k_norm"};

/// As nn.Parameter(torch.rand(d_in, d_out)), and as in attn's own arrays.
constexpr LayerNames bare_names{.in_out = true,
                                .is_open = true,
                                .needs_out = false,
                                .query = {"W_query", "b_query", true},
                                .key = {"W_key", "b_key", true},
                                .value = {"W_value", "b_value", true},
                                .out = {"W_out", "b_out", true},
                                .others = joined_buffers};

constexpr LayerNames each_head_of(LayerNames names) {
    names.layer = "heads.#.";
    names.is_wrapper = true;
    names.query_norm = names.key_norm = {};
    return names;
}

constexpr LayerNames notebook_layers[] = {each_head_of(linear_names), each_head_of(bare_names),
                                          linear_names, bare_names};

constexpr Family gpt2{.name = "gpt2",
                      .layers = gpt2_layers,
                      .norm = "h.#.ln_1",
                      .embedding = {.ids = "wte.weight", .positions = "wpe.weight"},
                      .eps = 1e-5,
                      .types = gpt2_types};
constexpr Family llama{.name = "llama",
                       .published = "model.",
                       .layers = llama_layers,
                       .norm = "layers.#.input_layernorm",
                       .embedding = {.ids = "embed_tokens.weight"},
                       .eps = 1e-6,
                       .rms = true,
                       .rotates = Rotates::heads,
                       .types = llama_types};
constexpr Family bert{.name = "bert",
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
constexpr Family neox{.name = "neox",
                      .published = "gpt_neox.",
                      .layers = neox_layers,
                      .norm = "layers.#.input_layernorm",
                      .embedding = {.ids = "embed_in.weight"},
                      .eps = 1e-5,
                      .rotates = Rotates::part_of_heads,
                      .types = neox_types};
constexpr Family meta{.name = "meta",
                      .layers = meta_layers,
                      .norm = "layers.#.attention_norm",
                      .embedding = {.ids = "tok_embeddings.weight"},
                      .eps = 1e-5,
                      .rms = true,
                      .rotates = Rotates::heads,
                      .pairs = Rope::interleaved};
constexpr Family internlm2{.name = "internlm2",
                           .published = "model.",
                           .layers = internlm2_layers,
                           .norm = "layers.#.attention_norm",
                           .embedding = {.ids = "tok_embeddings.weight"},
                           .eps = 1e-5,
                           .rms = true,
                           .rotates = Rotates::heads};
constexpr Family baichuan{.name = "baichuan",
                          .published = "model.",
                          .layers = baichuan_layers,
                          .norm = "layers.#.input_layernorm",
                          .embedding = {.ids = "embed_tokens.weight"},
                          .eps = 1e-6,
                          .rms = true,
                          .rotates = Rotates::heads};
constexpr Family chatglm{
    .name = "chatglm",
    .published = "transformer.",
    .layers = chatglm_layers,
    .norm = "encoder.layers.#.input_layernorm",
    .embedding = {.module = "embedding.", .ids = "embedding.word_embeddings.weight"},
    .eps = 1e-5,
    .rms = true,
    .rotates = Rotates::part_of_heads,
    .pairs = Rope::interleaved};
constexpr Family timm{
    .name = "timm", .layers = timm_layers, .norm = "blocks.#.norm1", .eps = 1e-6, .causal = false};

}  // namespace

constinit const Family families::mha{.name = "mha", .layers = mha_layers, .is_plain = true};
constinit const Family families::notebook{
    .name = "notebook", .layers = notebook_layers, .is_plain = true};

namespace {
constexpr const Family* every_family[] = {&gpt2,
                                          &llama,
                                          &bert,
                                          &neox,
                                          &meta,
                                          &internlm2,
                                          &baichuan,
                                          &chatglm,
                                          &timm,
                                          &families::mha,
                                          &families::notebook};
}  // namespace

std::span<const Family* const> all_families() {
    return every_family;
}

const Family* find_family(std::string_view name) {
    const auto found = std::find_if(std::begin(every_family), std::end(every_family),
                                    [&](const Family* family) { return family->name == name; });
    return found == std::end(every_family) ? nullptr : *found;
}

const Family* family_of_type(std::string_view model_type) {
    for (const Family* family : every_family)
        for (const std::string_view type : family->types)
            if (type == model_type) return family;
    return nullptr;
}

std::string names_of(std::span<const Family* const> families, std::string_view between,
                     std::string_view last) {
    std::string text;
    for (const Family* family : families) {
        if (family != families.front()) text += family == families.back() ? last : between;
        text += family->name;
    }
    return text;
}

std::vector<OutputRange> split_of(Packing packing, Part part, std::size_t outputs,
                                  std::size_t heads, std::size_t kv_heads) {
    if (packing == Packing::separate) return {{0, outputs, 0}};
    // Joined parts are one group. The lengths of a group's queries, keys and values.
    const std::size_t groups = packing == Packing::joined ? 1 : kv_heads;
    const std::size_t group = outputs / groups, total = heads + 2 * kv_heads;
    const std::size_t query = group * heads / total, key = group * kv_heads / total;
    const std::size_t before = part == Part::query ? 0 : part == Part::key ? query : query + key;
    const std::size_t count = part == Part::query ? query : key;
    std::vector<OutputRange> ranges;
    for (std::size_t i = 0; i < groups; ++i)
        ranges.push_back({i * group + before, count, i * count});
    return ranges;
}

std::size_t pieces_of(Packing packing, std::size_t heads, std::size_t kv_heads) {
    if (packing == Packing::separate) return 1;
    const std::size_t all = heads + 2 * kv_heads;
    return packing == Packing::joined ? all / std::gcd(heads, kv_heads) : all;
}

}  // namespace attn::io
