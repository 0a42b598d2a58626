// Sources: the configuration classes of transformers 4.51 and 5.23, what their attention modules
// read, and published files.
#include "io/model/config_keys.hpp"

#include <algorithm>
#include <cctype>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io/read/json_document.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// Without effect in every type, or not computed here, with the values that have no effect.
constexpr ConfigKey keys_of_all[] = {
    // Dropout is for training.
    {"attention_dropout"},
    {"attention_probs_dropout_prob"},
    {"attn_pdrop"},
    {"attn_dropout"},
    // Which program computes the same numbers, and in what order.
    {"_attn_implementation"},
    {"_attn_implementation_autoset"},
    {"_attn_implementation_internal"},
    {"attn_implementation"},
    {"_flash_attn_2_enabled"},
    {"use_flash_attn"},
    {"use_flash_attention"},
    {"use_flash_attention_2"},
    {"output_attentions"},
    // Separate attention modules.
    {"add_cross_attention"},
    {"cross_attention_hidden_size"},
    // The tables determine their length; nothing is truncated.
    {"max_position_embeddings"},
    {"n_positions"},
    // The input of the first layer and the logits are elsewhere.
    {"tie_word_embeddings"},
    {"mask_token_id"},
    {"logit_scale"},
    {"logits_scaling"},
    {"final_logit_softcapping"},
    // Not computed here.
    {"use_mrope", "[false]"},
    {"qk_norm", "[false, 0]"},
    {"use_qk_norm", "[false, 0]"},
    {"qk_layernorm", "[false, 0]"},
    {"use_qk_layernorm", "[false, 0]"},
    {"rope_interleaved", "[false]"},
    {"rope_interleave", "[false]"},
    {"attention_in_multiplier", "[1]"},
    {"attention_out_multiplier", "[1]"},
    {"key_multiplier", "[1]"},
    {"embedding_multiplier", "[1]"},
    {"scale_embedding", "[false]"},
    {"attention_sink_size", "[0]"},
};

/// For types with rotary embeddings: keys that config.cpp reads and checks, and keys whose other
/// values are not computed here.
constexpr ConfigKey keys_of_rope[] = {
    {"head_dim"},
    {"rope_theta"},
    {"rope_scaling"},
    {"rope_parameters"},
    {"partial_rotary_factor"},
    {"original_max_position_embeddings"},
    {"use_rope", "[true]"},
    {"position_embedding_type", "[\"rope\", \"rotary\"]"},
    {"rope_type", "[\"default\"]"},
    {"rope_scaling_factor", "[1]"},
};

/// In a word of the key; at the start of one.
constexpr std::string_view inside[] = {"attn",  "attention", "softcap", "rotary",
                                       "alibi", "causal",    "norm",    "window"};
constexpr std::string_view at_start[] = {
    "rope",  "head", "slid",  "posit", "bidirect", "relativ", "sink",     "scal", "clip",
    "mrope", "qk",   "kv",    "key",   "quer",     "value",   "logn",     "ntk",  "yarn",
    "nope",  "mask", "embed", "quant", "mqa",      "gqa",     "multihead"};

/// Features that all supported attention has, so that false and 0 would change it.
constexpr std::string_view always_there[] = {"causal", "rope", "rotary", "scal", "posit",
                                             "norm",   "bias", "head",   "clip", "window"};

/// "numKeyValueHeads" and "num_key_value_heads" have the same words, each after a '_'.
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

bool is_setting(std::string_view key, const ModelType& type) {
    for (std::string_view name : {type.heads, type.kv_heads, type.eps})
        if (name == key) return true;
    return !type.rope.base.empty() && (key == type.rope.base || key == type.rope.part);
}

const ConfigKey* find_key(std::string_view key, const ModelType& type) {
    const std::span<const ConfigKey> of_rope =
        type.rope.base.empty() ? std::span<const ConfigKey>{} : keys_of_rope;
    for (const std::span<const ConfigKey> keys :
         {type.others, of_rope, std::span<const ConfigKey>(keys_of_all)})
        for (const ConfigKey& row : keys)
            if (row.name == key) return &row;
    return nullptr;
}

}  // namespace

bool may_change_attention(const std::string& key, const json& value) {
    const std::string words = words_of(key);
    return concerns_attention(words) && !is_off(value, words);
}

std::string problem_of_key(const std::string& key, const json& value, const ModelType& type) {
    if (is_setting(key, type)) return "";
    if (const ConfigKey* row = find_key(key, type)) {
        if (row->values.empty() || value.empty()) return "";
        const json values = parse_own(row->values);
        if (std::find(values.begin(), values.end(), value) != values.end()) return "";
        std::string text;
        for (const json& right : values) text += (text.empty() ? "" : " or ") + right.dump();
        return text;
    }
    if (!may_change_attention(key, value)) return "";
    return "no such key, whose effect on the attention is not known";
}

}  // namespace attn::io
