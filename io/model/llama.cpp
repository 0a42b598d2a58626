// Llama and its relatives, Mistral and Qwen2, whose tensors have the same names: transformers'
// LlamaAttention, LlamaConfig, MistralConfig and Qwen2Config.
#include "io/model/family.hpp"

namespace attn::io {
namespace {

constexpr HarmlessTensor llama_buffers[] = {rotary_buffer};

constexpr LayerNames llama_layers[] = {{.layer = "layers.#.self_attn.",
                                        .query = {"q_proj.weight", "q_proj.bias"},
                                        .key = {"k_proj.weight", "k_proj.bias"},
                                        .value = {"v_proj.weight", "v_proj.bias"},
                                        .out = {"o_proj.weight", "o_proj.bias"},
                                        .others = llama_buffers,
                                        .query_norm = "q_norm",
                                        .key_norm = "k_norm"}};

/// LlamaModel has no window.
constexpr ConfigKey llama_keys[] = {{"attention_bias"},
                                    {"sliding_window"},
                                    {"use_sliding_window", "[false]"},
                                    {"max_window_layers"},
                                    {"is_causal", "[true]"}};

/// MistralModel has the same window in all layers.
constexpr ConfigKey mistral_keys[] = {{"attention_bias", "[false]"},
                                      {"sliding_window"},
                                      {"use_sliding_window"},
                                      {"max_window_layers"},
                                      {"is_causal", "[true]"}};

constexpr ConfigKey qwen2_keys[] = {{"attention_bias", "[true]"},
                                    {"sliding_window"},
                                    {"use_sliding_window"},
                                    {"max_window_layers"},
                                    {"is_causal", "[true]"}};

constexpr ModelType llama_types[] = {{.name = "llama",
                                      .kv_heads = "num_key_value_heads",
                                      .eps = "rms_norm_eps",
                                      .rope = {.base = "rope_theta"},
                                      .biases = {.from_config = true},
                                      .others = llama_keys},
                                     {.name = "mistral",
                                      .kv_heads = "num_key_value_heads",
                                      .eps = "rms_norm_eps",
                                      .rope = {.base = "rope_theta"},
                                      .windows = Windows::all,
                                      .others = mistral_keys},
                                     {.name = "qwen2",
                                      .kv_heads = "num_key_value_heads",
                                      .eps = "rms_norm_eps",
                                      .rope = {.base = "rope_theta"},
                                      .windows = Windows::upper,
                                      .biases = {.inputs = true},
                                      .others = qwen2_keys}};

}  // namespace

namespace families {
extern constinit const Family llama{.name = "llama",
                                    .published = "model.",
                                    .layers = llama_layers,
                                    .norm = "layers.#.input_layernorm",
                                    .embedding = {.ids = "embed_tokens.weight"},
                                    .eps = 1e-6,
                                    .rms = true,
                                    .rotates = Rotates::heads,
                                    .model_types = llama_types};
}  // namespace families

}  // namespace attn::io
