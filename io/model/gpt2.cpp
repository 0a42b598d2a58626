// GPT-2: transformers' GPT2Attention and GPT2Config.
#include <cmath>

#include <nlohmann/json.hpp>

#include "io/model/config.hpp"
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

constexpr ConfigKey gpt2_keys[] = {
    {"scale_attn_weights"},       {"scale_attn_by_inverse_layer_idx"},
    {"reorder_and_upcast_attn"},  // an equivalent name
    {"attention_bias", "[true]"}, {"is_causal", "[true]"},
    {"use_rope", "[false]"},      {"position_embedding_type", "[\"absolute\"]"}};

void read_gpt2_scale(ConfigReader& config) {
    const bool by_layer = config.flag("scale_attn_by_inverse_layer_idx", false);
    const bool unscaled = !config.flag("scale_attn_weights", true);
    if (!unscaled && !by_layer) return;
    double scale = unscaled ? 1
                            : 1 / std::sqrt(static_cast<double>(config.whole("n_embd", 1)) /
                                            static_cast<double>(config.heads()));
    if (by_layer) scale /= static_cast<double>(config.layer_number() + 1);
    config.fill("scale", unscaled ? "scale_attn_weights" : "scale_attn_by_inverse_layer_idx",
                scale);
}

constexpr ModelType gpt2_types[] = {{.name = "gpt2",
                                     .heads = "n_head",
                                     .width = "n_embd",
                                     .eps = "layer_norm_epsilon",
                                     .biases = {.inputs = true, .out = true},
                                     .others = gpt2_keys,
                                     .read_others = read_gpt2_scale}};

}  // namespace

namespace families {
extern constinit const Family gpt2{.name = "gpt2",
                                   .layers = gpt2_layers,
                                   .norm = "h.#.ln_1",
                                   .embedding = {.ids = "wte.weight", .positions = "wpe.weight"},
                                   .eps = 1e-5,
                                   .model_types = gpt2_types};
}  // namespace families

}  // namespace attn::io
