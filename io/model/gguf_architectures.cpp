#include "io/model/gguf_architectures.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "core/base/error.hpp"
#include "io/file/source.hpp"

namespace attn::io {
namespace {

constexpr TensorName llama_names[]{{"token_embd", "model.embed_tokens"},
                                   {"output_norm", "model.norm"},
                                   {"output", "lm_head"},
                                   {"rope_freqs.weight", "", TensorForm::left_out},
                                   {"blk.#.attn_norm", "model.layers.#.input_layernorm"},
                                   {"blk.#.attn_q", "model.layers.#.self_attn.q_proj"},
                                   {"blk.#.attn_k", "model.layers.#.self_attn.k_proj"},
                                   {"blk.#.attn_v", "model.layers.#.self_attn.v_proj"},
                                   {"blk.#.attn_output", "model.layers.#.self_attn.o_proj"},
                                   {"blk.#.attn_q_norm", "model.layers.#.self_attn.q_norm"},
                                   {"blk.#.attn_k_norm", "model.layers.#.self_attn.k_norm"},
                                   {"blk.#.ffn_norm", "model.layers.#.post_attention_layernorm"},
                                   {"blk.#.ffn_gate", "model.layers.#.mlp.gate_proj"},
                                   {"blk.#.ffn_up", "model.layers.#.mlp.up_proj"},
                                   {"blk.#.ffn_down", "model.layers.#.mlp.down_proj"}};

constexpr TensorName mixtral_names[]{
    {"blk.#.ffn_gate_inp", "model.layers.#.block_sparse_moe.gate"},
    {"blk.#.ffn_gate_exps", "model.layers.#.block_sparse_moe.experts.@.w1", TensorForm::one_by_one},
    {"blk.#.ffn_down_exps", "model.layers.#.block_sparse_moe.experts.@.w2", TensorForm::one_by_one},
    {"blk.#.ffn_up_exps", "model.layers.#.block_sparse_moe.experts.@.w3", TensorForm::one_by_one}};

constexpr TensorName qwen_moe_names[]{
    {"blk.#.ffn_gate_inp", "model.layers.#.mlp.gate"},
    {"blk.#.ffn_gate_exps", "model.layers.#.mlp.experts.@.gate_proj", TensorForm::one_by_one},
    {"blk.#.ffn_up_exps", "model.layers.#.mlp.experts.@.up_proj", TensorForm::one_by_one},
    {"blk.#.ffn_down_exps", "model.layers.#.mlp.experts.@.down_proj", TensorForm::one_by_one},
    {"blk.#.ffn_gate_inp_shexp", "model.layers.#.mlp.shared_expert_gate", TensorForm::one_row},
    {"blk.#.ffn_gate_shexp", "model.layers.#.mlp.shared_expert.gate_proj"},
    {"blk.#.ffn_up_shexp", "model.layers.#.mlp.shared_expert.up_proj"},
    {"blk.#.ffn_down_shexp", "model.layers.#.mlp.shared_expert.down_proj"}};

constexpr TensorName qwen35_names[]{
    {"blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm"},
    {"blk.#.attn_qkv", "model.layers.#.linear_attn.in_proj_qkv", TensorForm::mixed_heads},
    {"blk.#.attn_gate", "model.layers.#.linear_attn.in_proj_z", TensorForm::value_heads},
    {"blk.#.ssm_alpha", "model.layers.#.linear_attn.in_proj_a", TensorForm::value_heads},
    {"blk.#.ssm_beta", "model.layers.#.linear_attn.in_proj_b", TensorForm::value_heads},
    {"blk.#.ssm_conv1d", "model.layers.#.linear_attn.conv1d", TensorForm::mixed_channels},
    {"blk.#.ssm_dt.bias", "model.layers.#.linear_attn.dt_bias", TensorForm::value_heads},
    {"blk.#.ssm_a", "model.layers.#.linear_attn.A", TensorForm::decays},
    {"blk.#.ssm_norm", "model.layers.#.linear_attn.norm"},
    {"blk.#.ssm_out", "model.layers.#.linear_attn.out_proj", TensorForm::value_columns}};

/// Gemma 2 and 3.
constexpr TensorName gemma_names[]{
    {"blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm"},
    {"blk.#.ffn_norm", "model.layers.#.pre_feedforward_layernorm"},
    {"blk.#.post_ffw_norm", "model.layers.#.post_feedforward_layernorm"}};

constexpr TensorName gpt_oss_names[]{
    {"blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm"},
    {"blk.#.attn_sinks.weight", "model.layers.#.self_attn.sinks"},
    {"blk.#.ffn_gate_inp", "model.layers.#.mlp.router"},
    {"blk.#.ffn_gate_exps.weight", "model.layers.#.mlp.experts.gate_up_proj",
     TensorForm::gate_by_turns},
    {"blk.#.ffn_gate_exps.bias", "model.layers.#.mlp.experts.gate_up_proj_bias",
     TensorForm::gate_by_turns},
    {"blk.#.ffn_up_exps.weight", "", TensorForm::up_by_turns},
    {"blk.#.ffn_up_exps.bias", "", TensorForm::up_by_turns},
    {"blk.#.ffn_down_exps.weight", "model.layers.#.mlp.experts.down_proj"},
    {"blk.#.ffn_down_exps.bias", "model.layers.#.mlp.experts.down_proj_bias"}};

constexpr TensorName phi3_names[]{{"blk.#.attn_qkv", "model.layers.#.self_attn.qkv_proj"},
                                  {"blk.#.ffn_up", "model.layers.#.mlp.gate_up_proj"},
                                  {"rope_factors_long.weight", "", TensorForm::left_out},
                                  {"rope_factors_short.weight", "", TensorForm::left_out}};

constexpr TensorName gpt2_names[]{
    {"token_embd", "transformer.wte"},
    {"position_embd", "transformer.wpe"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
    {"blk.#.attn_norm", "transformer.h.#.ln_1"},
    {"blk.#.attn_qkv", "transformer.h.#.attn.c_attn", TensorForm::transposed},
    {"blk.#.attn_output", "transformer.h.#.attn.c_proj", TensorForm::transposed},
    {"blk.#.ffn_norm", "transformer.h.#.ln_2"},
    {"blk.#.ffn_up", "transformer.h.#.mlp.c_fc", TensorForm::transposed},
    {"blk.#.ffn_down", "transformer.h.#.mlp.c_proj", TensorForm::transposed}};

constexpr TensorName starcoder2_names[]{{"blk.#.ffn_up", "model.layers.#.mlp.c_fc"},
                                        {"blk.#.ffn_down", "model.layers.#.mlp.c_proj"}};

constexpr TensorName falcon_names[]{
    {"token_embd", "transformer.word_embeddings"},
    {"output_norm", "transformer.ln_f"},
    {"output", "lm_head"},
    {"blk.#.attn_norm", "transformer.h.#.input_layernorm"},
    {"blk.#.attn_qkv", "transformer.h.#.self_attention.query_key_value", TensorForm::of_groups},
    {"blk.#.attn_output", "transformer.h.#.self_attention.dense"},
    {"blk.#.ffn_up", "transformer.h.#.mlp.dense_h_to_4h"},
    {"blk.#.ffn_down", "transformer.h.#.mlp.dense_4h_to_h"}};

/// Falcon with two norms.
constexpr TensorName new_falcon_names[]{{"blk.#.attn_norm", "transformer.h.#.ln_mlp"},
                                        {"blk.#.attn_norm_2", "transformer.h.#.ln_attn"}};

constexpr TensorName bloom_names[]{
    {"token_embd_norm", "transformer.word_embeddings_layernorm"},
    {"blk.#.attn_qkv", "transformer.h.#.self_attention.query_key_value", TensorForm::of_heads},
    {"blk.#.ffn_norm", "transformer.h.#.post_attention_layernorm"}};

constexpr TensorName mpt_names[]{{"token_embd", "transformer.wte"},
                                 {"position_embd", "transformer.wpe"},
                                 {"output_norm", "transformer.norm_f"},
                                 {"output", "lm_head"},
                                 {"blk.#.attn_norm", "transformer.blocks.#.norm_1"},
                                 {"blk.#.attn_qkv", "transformer.blocks.#.attn.Wqkv"},
                                 {"blk.#.attn_output", "transformer.blocks.#.attn.out_proj"},
                                 {"blk.#.ffn_norm", "transformer.blocks.#.norm_2"},
                                 {"blk.#.ffn_up", "transformer.blocks.#.ffn.up_proj"},
                                 {"blk.#.ffn_down", "transformer.blocks.#.ffn.down_proj"}};

constexpr TensorName stablelm_names[]{
    {"blk.#.attn_q_norm", "model.layers.#.self_attn.q_layernorm.norms.@", TensorForm::one_by_one},
    {"blk.#.attn_k_norm", "model.layers.#.self_attn.k_layernorm.norms.@", TensorForm::one_by_one}};

constexpr TensorName olmo2_names[]{
    {"blk.#.post_attention_norm", "model.layers.#.post_attention_layernorm"},
    {"blk.#.post_ffw_norm", "model.layers.#.post_feedforward_layernorm"}};

constexpr TensorName bert_names[]{
    {"token_embd", "bert.embeddings.word_embeddings"},
    {"position_embd", "bert.embeddings.position_embeddings"},
    {"token_types", "bert.embeddings.token_type_embeddings"},
    {"token_embd_norm", "bert.embeddings.LayerNorm"},
    {"blk.#.attn_q", "bert.encoder.layer.#.attention.self.query"},
    {"blk.#.attn_k", "bert.encoder.layer.#.attention.self.key"},
    {"blk.#.attn_v", "bert.encoder.layer.#.attention.self.value"},
    {"blk.#.attn_output", "bert.encoder.layer.#.attention.output.dense"},
    {"blk.#.attn_output_norm", "bert.encoder.layer.#.attention.output.LayerNorm"},
    {"blk.#.ffn_up", "bert.encoder.layer.#.intermediate.dense"},
    {"blk.#.ffn_down", "bert.encoder.layer.#.output.dense"},
    {"blk.#.layer_output_norm", "bert.encoder.layer.#.output.LayerNorm"}};

constexpr TensorName nomic_names[]{
    {"token_embd", "nomic_bert.embeddings.word_embeddings"},
    {"token_types", "nomic_bert.embeddings.token_type_embeddings"},
    {"token_embd_norm", "nomic_bert.emb_ln"},
    {"blk.#.attn_qkv", "nomic_bert.encoder.layers.#.attn.Wqkv"},
    {"blk.#.attn_output", "nomic_bert.encoder.layers.#.attn.out_proj"},
    {"blk.#.attn_output_norm", "nomic_bert.encoder.layers.#.norm1"},
    {"blk.#.ffn_up", "nomic_bert.encoder.layers.#.mlp.fc11"},
    {"blk.#.ffn_gate", "nomic_bert.encoder.layers.#.mlp.fc12"},
    {"blk.#.ffn_down", "nomic_bert.encoder.layers.#.mlp.fc2"},
    {"blk.#.layer_output_norm", "nomic_bert.encoder.layers.#.norm2"}};

/// Keys of no effect on the numbers, or that Facts and `finish` read, have no member.
constexpr KeyName common_members[]{
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"vocab_size", ""},
    {"tensor_data_layout", ""},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.value_length", ""},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"attention.sliding_window", "sliding_window"},
    {"attention.causal", ""},
    {"rope.freq_base", "rope_theta"},
    {"rope.dimension_count", ""},
    {"rope.scaling.type", ""},
    {"rope.scaling.factor", ""},
    {"rope.scaling.original_context_length", ""},
    {"rope.scaling.attn_factor", ""},
    {"rope.scaling.finetuned", ""},
    {"rope.scaling.yarn_beta_fast", ""},
    {"rope.scaling.yarn_beta_slow", ""},
    {"rope.scale_linear", ""},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};

/// llama.cpp computes them without a window.
constexpr KeyName qwen_members[]{{"attention.sliding_window", ""}};
constexpr KeyName local_expert_keys[]{{"expert_count", "num_local_experts"},
                                      {"expert_feed_forward_length", "intermediate_size"}};
constexpr KeyName qwen35_members[]{{"ssm.conv_kernel", "linear_conv_kernel_dim"},
                                   {"ssm.state_size", "linear_key_head_dim"},
                                   {"ssm.group_count", "linear_num_key_heads"},
                                   {"ssm.time_step_rank", "linear_num_value_heads"},
                                   {"ssm.inner_size", ""},
                                   {"rope.freq_base", ""},
                                   {"rope.dimension_sections", ""},
                                   {"full_attention_interval", "full_attention_interval"}};
constexpr KeyName gemma_members[]{{"attn_logit_softcapping", "attn_logit_softcapping"},
                                  {"final_logit_softcapping", "final_logit_softcapping"},
                                  {"attention.sliding_window_pattern", ""},
                                  {"rope.freq_base_swa", ""}};
constexpr KeyName gpt2_members[]{
    {"context_length", "n_positions"},  {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},         {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"}, {"attention.head_count_kv", ""},
    {"attention.key_length", ""},       {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr KeyName starcoder2_members[]{{"attention.layer_norm_epsilon", "norm_epsilon"},
                                       {"attention.key_length", ""}};
constexpr KeyName falcon_members[]{{"feed_forward_length", "ffn_hidden_size"},
                                   {"attention.head_count_kv", ""},
                                   {"attention.key_length", ""},
                                   {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr KeyName bloom_members[]{
    {"context_length", "seq_length"}, {"block_count", "n_layer"},
    {"feed_forward_length", ""},      {"attention.head_count", "n_head"},
    {"attention.head_count_kv", ""},  {"attention.key_length", ""},
    {"attention.max_alibi_bias", ""}, {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr KeyName mpt_members[]{
    {"context_length", "max_seq_len"},   {"embedding_length", "d_model"},
    {"block_count", "n_layers"},         {"feed_forward_length", ""},
    {"attention.head_count", "n_heads"}, {"attention.head_count_kv", ""},
    {"attention.key_length", ""},        {"attention.clamp_kqv", ""},
    {"attention.max_alibi_bias", ""},    {"attention.layer_norm_epsilon", "layer_norm_epsilon"}};
constexpr KeyName stablelm_members[]{{"use_parallel_residual", ""}, {"attention.key_length", ""}};
constexpr KeyName granite_members[]{{"attention.scale", "attention_multiplier"},
                                    {"embedding_scale", "embedding_multiplier"},
                                    {"residual_scale", "residual_multiplier"},
                                    {"logit_scale", "logits_scaling"},
                                    {"attention.key_length", ""}};
constexpr KeyName cohere_members[]{{"logit_scale", "logit_scale"}, {"attention.key_length", ""}};
constexpr KeyName cohere2_members[]{{"logit_scale", "logit_scale"}};
constexpr KeyName bert_members[]{
    {"attention.head_count_kv", ""}, {"attention.key_length", ""}, {"pooling_type", ""}};
constexpr KeyName nomic_members[]{
    {"attention.head_count_kv", ""}, {"pooling_type", ""}, {"moe_every_n_layers", ""}};

constexpr std::string_view silu = R"({"hidden_act":"silu"})";
constexpr std::string_view gemma =
    R"({"hidden_act":"gelu_pytorch_tanh","hidden_activation":"gelu_pytorch_tanh"})";
constexpr std::string_view qwen3_moe = R"({"hidden_act":"silu","norm_topk_prob":true,
    "decoder_sparse_step":1,"mlp_only_layers":[],"attention_bias":false})";
constexpr std::string_view qwen2_moe = R"({"hidden_act":"silu","norm_topk_prob":false,
    "decoder_sparse_step":1,"mlp_only_layers":[],"qkv_bias":true})";

constexpr std::span<const TensorName> none;

constexpr Architecture architectures[]{
    {"llama", "mixtral", "blk.0.ffn_gate_exps.weight", mixtral_names, llama_names, true, false,
     local_expert_keys, silu, nullptr},
    {"llama", "llama", "", none, llama_names, true, false, {}, silu, finish_llama},
    {"qwen2", "qwen2", "", none, llama_names, false, false, qwen_members, silu, nullptr},
    {"qwen2moe", "qwen2_moe", "", qwen_moe_names, llama_names, false, false, qwen_members,
     qwen2_moe, nullptr},
    {"qwen3", "qwen3", "", none, llama_names, false, false, qwen_members, silu, nullptr},
    {"qwen3moe", "qwen3_moe", "", qwen_moe_names, llama_names, false, false, qwen_members,
     qwen3_moe, nullptr},
    {"qwen35", "qwen3_5_text", "", qwen35_names, llama_names, false, true, qwen35_members, silu,
     finish_qwen35},
    {"gemma", "gemma", "", none, llama_names, false, true, {}, gemma, nullptr},
    {"gemma2", "gemma2", "", gemma_names, llama_names, false, true, gemma_members, gemma,
     finish_gemma2},
    {"gemma3", "gemma3_text", "", gemma_names, llama_names, false, true, gemma_members, gemma,
     finish_gemma3},
    {"gpt-oss", "gpt_oss", "", gpt_oss_names, llama_names, false, false, local_expert_keys, silu,
     finish_gpt_oss},
    {"phi3", "phi3", "", phi3_names, llama_names, false, false, {}, silu, finish_phi3},
    {"gpt2", "gpt2", "", gpt2_names, none, false, false, gpt2_members,
     R"({"activation_function":"gelu_new"})", nullptr},
    {"starcoder2", "starcoder2", "", starcoder2_names, llama_names, false, false,
     starcoder2_members, R"({"hidden_act":"gelu_pytorch_tanh","use_bias":true})", nullptr},
    {"falcon", "falcon", "blk.0.attn_norm_2.weight", new_falcon_names, falcon_names, false, false,
     falcon_members, R"({"new_decoder_architecture":true})", finish_falcon},
    {"falcon", "falcon", "", none, falcon_names, false, false, falcon_members,
     R"({"new_decoder_architecture":false})", finish_falcon},
    {"bloom", "bloom", "", bloom_names, falcon_names, false, false, bloom_members,
     R"({"apply_residual_connection_post_layernorm":false})", nullptr},
    {"mpt", "mpt", "", mpt_names, none, false, false, mpt_members, "{}", finish_mpt},
    {"stablelm", "stablelm", "", stablelm_names, llama_names, false, false, stablelm_members, silu,
     finish_stablelm},
    {"olmo2", "olmo2", "", olmo2_names, llama_names, false, false, {}, silu, nullptr},
    {"granite", "granite", "", none, llama_names, true, false, granite_members, silu, finish_llama},
    {"command-r", "cohere", "", none, llama_names, false, false, cohere_members, silu,
     finish_cohere},
    {"cohere2", "cohere2", "", none, llama_names, false, false, cohere2_members, silu,
     finish_cohere},
    {"bert", "bert", "", bert_names, none, false, false, bert_members, R"({"hidden_act":"gelu"})",
     finish_bert},
    {"nomic-bert", "nomic_bert", "", nomic_names, none, false, false, nomic_members, silu,
     finish_bert}};

}  // namespace

std::span<const KeyName> common_keys() {
    return common_members;
}

const Architecture& find_architecture(std::string_view name, const ArrayFile& file) {
    std::string known;
    for (const Architecture& row : architectures) {
        if (row.name == name && (row.needs.empty() || file.find(std::string(row.needs)) != nullptr))
            return row;
        if (known.find(std::string(row.name) + ", ") == std::string::npos)
            known += std::string(row.name) + ", ";
    }
    throw Error(ErrorKind::unsupported, file.name,
                "general.architecture is \"" + one_line(shortened(std::string(name))) +
                    "\"; expected one of " + known.substr(0, known.size() - 2));
}

}  // namespace attn::io
