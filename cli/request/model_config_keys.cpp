// The keys of config.json; see model_config_keys.hpp. Sources: the configuration classes of
// transformers 4.51 and 5.23, what their attention modules read, and published files.
#include "cli/request/model_config_keys.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include <nlohmann/json.hpp>

namespace attn::cli {
namespace {

using nlohmann::json;

/// A key whose words concern attention, or may.
struct ConfigKey {
    std::string_view name;
    ModelTypes types;
    std::string_view values;  ///< the values that are right, as a JSON list; empty: any
};

/// Read in config.cpp, which checks their values.
constexpr ConfigKey settings[] = {
    {"n_head", gpt2, ""},
    {"layer_norm_epsilon", gpt2, ""},
    {"scale_attn_weights", gpt2, ""},
    {"scale_attn_by_inverse_layer_idx", gpt2, ""},
    {"num_attention_heads", all_types & ~gpt2, ""},
    {"num_key_value_heads", llama_like, ""},
    {"head_dim", rotary, ""},
    {"rms_norm_eps", llama_like, ""},
    {"layer_norm_eps", bert | neox, ""},
    {"rope_theta", rotary, ""},
    {"rope_scaling", rotary, ""},
    {"rope_parameters", rotary, ""},
    {"partial_rotary_factor", rotary, ""},
    {"rotary_pct", neox, ""},
    {"rotary_emb_base", neox, ""},
    {"original_max_position_embeddings", rotary, ""},
    {"attention_bias", llama | neox, ""},
    {"sliding_window", mistral | qwen2, ""},
    {"use_sliding_window", mistral | qwen2, ""},
    {"max_window_layers", qwen2, ""},
    {"position_embedding_type", bert, ""},
};

/// Without effect, for the reason above each group.
constexpr ConfigKey harmless[] = {
    // Dropout is for training.
    {"attention_dropout", all_types, ""},
    {"attention_probs_dropout_prob", all_types, ""},
    {"attn_pdrop", all_types, ""},
    {"attn_dropout", all_types, ""},
    // Which program computes the same numbers, and in what order.
    {"_attn_implementation", all_types, ""},
    {"_attn_implementation_autoset", all_types, ""},
    {"_attn_implementation_internal", all_types, ""},
    {"attn_implementation", all_types, ""},
    {"_flash_attn_2_enabled", all_types, ""},
    {"use_flash_attn", all_types, ""},
    {"use_flash_attention", all_types, ""},
    {"use_flash_attention_2", all_types, ""},
    {"reorder_and_upcast_attn", gpt2, ""},
    {"output_attentions", all_types, ""},
    // Attention modules of their own, and the head of a classifier.
    {"add_cross_attention", all_types, ""},
    {"cross_attention_hidden_size", all_types, ""},
    {"pooler_num_attention_heads", bert, ""},
    {"pooler_size_per_head", bert, ""},
    // The tables say how long they are; nothing is cut.
    {"max_position_embeddings", all_types, ""},
    {"n_positions", all_types, ""},
    // The input of the first layer and the logits are elsewhere.
    {"tie_word_embeddings", all_types, ""},
    {"mask_token_id", all_types, ""},
    {"logit_scale", all_types, ""},
    {"logits_scaling", all_types, ""},
    {"final_logit_softcapping", all_types, ""},
    // LlamaModel has no window, MistralModel the same one in all layers.
    {"sliding_window", llama, ""},
    {"max_window_layers", llama | mistral, ""},
};

/// Not computed here, with the values at which that makes no difference.
constexpr ConfigKey fixed[] = {
    {"attention_bias", gpt2 | bert | qwen2, "[true]"},
    {"attention_bias", mistral, "[false]"},
    {"use_sliding_window", llama, "[false]"},
    {"is_causal", all_types & ~bert, "[true]"},
    {"is_causal", bert, "[false]"},
    {"use_mrope", all_types, "[false]"},
    {"qk_norm", all_types, "[false, 0]"},
    {"use_qk_norm", all_types, "[false, 0]"},
    {"qk_layernorm", all_types, "[false, 0]"},
    {"use_qk_layernorm", all_types, "[false, 0]"},
    {"use_rope", rotary, "[true]"},
    {"use_rope", gpt2 | bert, "[false]"},
    {"position_embedding_type", gpt2, "[\"absolute\"]"},
    {"position_embedding_type", rotary, "[\"rope\", \"rotary\"]"},
    {"rope_type", rotary, "[\"default\"]"},
    {"rope_scaling_factor", rotary, "[1]"},
    {"rope_interleaved", all_types, "[false]"},
    {"rope_interleave", all_types, "[false]"},
    {"attention_in_multiplier", all_types, "[1]"},
    {"attention_out_multiplier", all_types, "[1]"},
    {"key_multiplier", all_types, "[1]"},
    {"embedding_multiplier", all_types, "[1]"},
    {"scale_embedding", all_types, "[false]"},
    {"attention_sink_size", all_types, "[0]"},
};

/// In a word of the key; at the start of one.
constexpr std::string_view inside[] = {"attn",  "attention", "softcap", "rotary",
                                       "alibi", "causal",    "norm",    "window"};
constexpr std::string_view at_start[] = {
    "rope",  "head", "slid",  "posit", "bidirect", "relativ", "sink",     "scal", "clip",
    "mrope", "qk",   "kv",    "key",   "quer",     "value",   "logn",     "ntk",  "yarn",
    "nope",  "mask", "embed", "quant", "mqa",      "gqa",     "multihead"};

/// What every attention here does, so that false and 0 are no way of leaving it as it is.
constexpr std::string_view always_there[] = {"causal", "rope", "rotary", "scal", "posit",
                                             "norm",   "bias", "head",   "clip", "window"};

/// "numKeyValueHeads" and "num_key_value_heads" have the same words, each behind a '_'.
std::string words_of(const std::string& key) {
    std::string words = "_";
    for (std::size_t i = 0; i < key.size(); ++i) {
        const auto letter = static_cast<unsigned char>(key[i]);
        const bool begins = i > 0 && std::isupper(letter) != 0 &&
                            std::islower(static_cast<unsigned char>(key[i - 1])) != 0;
        if (begins) words += '_';
        words += std::isalnum(letter) != 0 ? static_cast<char>(std::tolower(letter)) : '_';
    }
    return words;
}

bool concerns_attention(const std::string& words) {
    return std::any_of(std::begin(inside), std::end(inside),
                       [&](std::string_view word) { return words.find(word) != words.npos; }) ||
           std::any_of(std::begin(at_start), std::end(at_start), [&](std::string_view word) {
               return words.find("_" + std::string(word)) != words.npos;
           });
}

bool is_off(const json& value, const std::string& words) {
    if (value.empty()) return true;  // null, [] or {}
    if (value != json(false) && value != json(0)) return false;
    return std::none_of(std::begin(always_there), std::end(always_there),
                        [&](std::string_view word) { return words.find(word) != words.npos; });
}

const ConfigKey* find_key(const std::string& key, ModelTypes type) {
    const auto fits = [&](const ConfigKey& row) {
        return row.name == key && (row.types & type) != 0;
    };
    for (const auto& [begin, end] : {std::pair(std::begin(settings), std::end(settings)),
                                     {std::begin(harmless), std::end(harmless)},
                                     {std::begin(fixed), std::end(fixed)}})
        if (const ConfigKey* row = std::find_if(begin, end, fits); row != end) return row;
    return nullptr;
}

}  // namespace

std::string problem_of_key(const std::string& key, const json& value, ModelTypes type) {
    if (const ConfigKey* row = find_key(key, type)) {
        if (row->values.empty() || value.empty()) return "";
        const json values = json::parse(row->values);
        if (std::find(values.begin(), values.end(), value) != values.end()) return "";
        std::string text;
        for (const json& right : values) text += (text.empty() ? "" : " or ") + right.dump();
        return text;
    }
    const std::string words = words_of(key);
    if (!concerns_attention(words) || is_off(value, words)) return "";
    return "no such key, whose effect on the attention is not known";
}

}  // namespace attn::cli
