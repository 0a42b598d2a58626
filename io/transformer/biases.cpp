#include "io/transformer/biases.hpp"

#include <algorithm>
#include <ranges>

#include "core/base/error.hpp"

namespace attn::io {
namespace {

/// Of families, separated by spaces, or of all; the last rule that fits a module decides. A module
/// fits if "." and its name end with one of `modules`, or if this is "*".
struct BiasRule {
    std::string_view types, modules;
    std::string_view key;  ///< a flag of the config; or one of these
};
constexpr std::string_view always = "+", never = "-";

constexpr std::string_view query_key_value = ".q_proj .k_proj .v_proj",
                           feed_forward = ".gate_proj .up_proj .down_proj";

// As in the classes of transformers 5.24. Without a rule, families with LayerNorms have biases and
// others have none.
constexpr BiasRule bias_rules[] = {
    {"cohere cohere2 cohere2_moe dbrx modernbert modernbert-decoder moonshine mpt olmo", "*",
     never},
    {"", ".lm_head .output_projection .proj_out .embed_out", never},
    {"codegen gptj phi", ".lm_head", always},
    {"phimoe", ".lm_head", "lm_head_bias"},

    // Where the class has these keys.
    {"",
     ".self_attn.q_proj .self_attn.k_proj .self_attn.v_proj .self_attn.o_proj .self_attn.q_a_proj "
     ".self_attn.kv_a_proj_with_mqa .cross_attn.q_proj .cross_attn.k_proj .cross_attn.v_proj "
     ".cross_attn.o_proj",
     "attention_bias"},
    {"", feed_forward, "mlp_bias"},
    {"deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa kimi_linear minicpm3 mistral4 "
     "youtu",
     ".q_proj .k_proj .v_proj", never},
    {"glm glm4 glm4_moe helium mimo_v2_flash moonshine solar_open", ".o_proj", never},
    {"deepseek_v32 glm_moe_dsa", feed_forward, never},
    {"deepseek_v4", ".shared_experts.w1 .shared_experts.w2 .shared_experts.w3", "mlp_bias"},
    {"deepseek_v4", ".q_a_proj", never},
    {"deepseek_v4", ".ffn.gate", always},  // for the choice of experts alone
    {"glm4v glm4v_text qwen2 qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text", query_key_value,
     always},
    {"qwen2_moe", query_key_value, "qkv_bias"},
    {"seed_oss", ".o_proj", "attention_out_bias"},
    {"ernie4_5 ernie4_5_moe", ".q_proj .k_proj .v_proj .o_proj .gate_proj .up_proj .down_proj",
     "use_bias"},
    {"doge", ".dt_proj", "attention_bias"},
    {"gpt_oss", ".router .experts.gate_up_proj .experts.down_proj", always},
    {"phimoe", ".block_sparse_moe.gate .router", never},
    {"bailing_hybrid", ".kv_a_proj_with_mqa .attention.dense", "attention_bias"},
    {"deepseek_v32 glm_moe_dsa", ".indexer.k_norm", always},
    {"lfm2 lfm2_moe", ".conv.conv .conv.in_proj .conv.out_proj", "conv_bias"},
    {"granitemoehybrid", ".mamba.in_proj .mamba.out_proj", "mamba_proj_bias"},

    // Encoders.
    {"modernbert modernbert-decoder", "norm", "norm_bias"},
    {"modernbert modernbert-decoder", ".attn.Wqkv .attn.Wo .attn.q_proj .attn.k_proj .attn.v_proj",
     "attention_bias"},
    {"modernbert modernbert-decoder", ".mlp.Wi .mlp.Wo", "mlp_bias"},
    {"esmc", ".q_norm .k_norm .norm", never},
    {"gte", ".up_gate_proj .gate_proj .up_proj", never},
    {"nomic_bert", ".Wqkv .out_proj .fc11 .fc12 .fc2 .q_proj .k_proj .v_proj .o_proj", never},
    {"nomic_bert", feed_forward, never},
    {"deberta", ".self.in_proj .self.pos_proj", never},

    // Decoders with LayerNorms.
    {"codegen gpt_neo gptj", ".qkv_proj .q_proj .k_proj .v_proj", never},
    {"codegen gptj", ".out_proj", never},
    {"falcon", ".query_key_value .dense .dense_h_to_4h .dense_4h_to_h", "bias"},
    {"gpt_neox", ".attention.query_key_value .attention.dense", "attention_bias"},
    {"stablelm", query_key_value, "use_qkv_bias"},
    {"stablelm", ".o_proj .gate_proj .up_proj .down_proj", never},
    {"starcoder2", ".q_proj .k_proj .v_proj .o_proj .c_fc .c_proj", "use_bias"},
    {"opt", ".q_proj .k_proj .v_proj .out_proj .fc1 .fc2", "enable_bias"},
    {"opt", "layer_norm", "layer_norm_elementwise_affine"},
    {"opt", ".project_in .project_out", never},

    // Images and sound.
    {"vit deit audio-spectrogram-transformer dinov2 dinov2_with_registers",
     ".attention.query .attention.key "
     ".attention.value",
     "qkv_bias"},
    {"dinov3_vit", ".q_proj", "query_bias"},
    {"dinov3_vit", ".k_proj", "key_bias"},
    {"dinov3_vit", ".v_proj", "value_bias"},
    {"dinov3_vit", ".o_proj", "proj_bias"},
    {"beit", ".attention.key", never},
    {"clip clip_vision_model", ".patch_embedding", never},
    {"whisper", ".k_proj", never},
    {"moonshine", ".fc1 .fc2 .conv2 .conv3 .groupnorm", always},
    {"moonshine", query_key_value, "attention_bias"},
    {"hubert wav2vec2 wavlm", ".conv", "conv_bias"},
    {"hubert wav2vec2 wavlm", ".pos_conv_embed.conv", always},
};

/// Whether a word fits.
template <class Fits>
bool any_word(std::string_view words, const Fits& fits) {
    return std::ranges::any_of(std::views::split(words, ' '), [&](const auto& word) {
        return fits(std::string_view(word.begin(), word.end()));
    });
}

}  // namespace

void refuse_bias(const std::string& module, const std::string& bias, const std::string& file) {
    throw Error(ErrorKind::input, file,
                "tensor \"" + bias +
                    "\" is not used by the family of config.json's model_type; expected a "
                    "model_type whose \"" +
                    module + "\" has a bias, or a file without it");
}

BiasRules::BiasRules(const FamilyRow& row, std::string_view model_type, const ModelConfig& config)
    : config_(config), by_default_(!row.rms) {
    const std::string_view own = row.type.empty() ? model_type : row.type;
    for (const BiasRule& rule : bias_rules) {
        const bool is_key = rule.key != always && rule.key != never;
        const bool is_own = any_word(rule.types, [&](std::string_view t) { return t == own; });
        if (!is_own && !rule.types.empty()) continue;
        if (is_key && !config.has_default(rule.key)) continue;
        rules_.push_back({rule.modules, is_key ? rule.key : std::string_view(),
                          is_key ? config.flag(rule.key) : rule.key == always});
    }
}

void BiasRules::check(const std::string& module, const std::string& bias,
                      const std::string& file) const {
    const std::string name = "." + module;
    const bool is_expert = name.find(".experts.") != std::string::npos;
    Own last{{}, {}, by_default_ && !is_expert};
    for (const Own& rule : rules_)
        if (any_word(rule.modules, [&](std::string_view end) {
                return end == "*" ||
                       (name.ends_with(end) && (!is_expert || end.starts_with(".experts.")));
            }))
            last = rule;
    if (last.is_there) return;
    if (!last.key.empty())
        config_.fail(last.key, "true, as the file has the tensor \"" + bias + "\"");
    refuse_bias(module, bias, file);
}

}  // namespace attn::io
