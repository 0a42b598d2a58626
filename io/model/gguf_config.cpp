#include "io/model/gguf_config.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/model/gguf_architectures.hpp"
#include "io/read/json_document.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// "sliding_attention", or "full_attention" for each layer whose number is `remainder` modulo
/// `period`.
json layer_types(const GgufFacts& facts, std::uint64_t period, std::uint64_t remainder,
                 const char* others = "sliding_attention") {
    constexpr std::uint64_t most = 65536;
    const std::uint64_t layers = facts.layers();
    if (layers > most)
        facts.fail("block_count", std::to_string(layers), "at most " + std::to_string(most));
    json types = json::array();
    for (std::uint64_t i = 0; i < layers; ++i)
        types.push_back(i % period == remainder ? "full_attention" : others);
    return types;
}

/// Gemma's largest models scale by the width of a layer's head, not of the key.
void write_query_scale(const GgufFacts& facts, json& config, std::uint64_t layers_of_largest) {
    config["query_pre_attn_scalar"] = facts.layers() == layers_of_largest
                                          ? facts.whole("embedding_length") / facts.heads()
                                          : facts.head_dim();
}

void finish_llama(const GgufFacts& /*facts*/, json& config) {
    if (config.contains("sliding_window")) config["model_type"] = "mistral";
}

void finish_gemma2(const GgufFacts& facts, json& config) {
    write_query_scale(facts, config, 46);
    config["layer_types"] = layer_types(facts, 2, 1);
    config["attn_logit_softcapping"] = facts.number("attn_logit_softcapping", 50);
    config["final_logit_softcapping"] = facts.number("final_logit_softcapping", 30);
}

void finish_gemma3(const GgufFacts& facts, json& config) {
    write_query_scale(facts, config, 62);
    const json pattern = facts.at("attention.sliding_window_pattern");
    if (pattern.is_array()) {  // whether each layer slides
        json types = json::array();
        for (const json& slides : pattern)
            types.push_back(slides == true ? "sliding_attention" : "full_attention");
        if (types.size() != facts.layers())
            facts.fail("attention.sliding_window_pattern", std::to_string(types.size()) + " values",
                       "one for each layer");
        config["layer_types"] = std::move(types);
    } else {
        const std::uint64_t period = facts.whole("attention.sliding_window_pattern", 6);
        const bool slides = config.contains("sliding_window");
        config["layer_types"] =
            slides ? layer_types(facts, period, period - 1) : layer_types(facts, 1, 0);
    }
    config["rope_local_base_freq"] = facts.number("rope.freq_base_swa", 10000);
}

void finish_gpt_oss(const GgufFacts& facts, json& config) {
    config["layer_types"] = layer_types(facts, 2, 1);
    // llama.cpp rounds the ends of the ramp. Without this member transformers would scale.
    if (config.contains("rope_scaling"))
        config["rope_scaling"]["truncate"] = true;
    else
        config["rope_scaling"] = {{"rope_type", "default"}};
}

void finish_qwen35(const GgufFacts& facts, json& config) {
    const std::uint64_t period = facts.whole("full_attention_interval", 4);
    config["layer_types"] = layer_types(facts, period, period - 1, "linear_attention");
    config["linear_value_head_dim"] =
        facts.whole("ssm.inner_size") / facts.whole("ssm.time_step_rank");
    json rope{{"rope_type", "default"}, {"rope_theta", facts.number("rope.freq_base", 1e7)}};
    if (config.contains("partial_rotary_factor"))
        rope["partial_rotary_factor"] = config["partial_rotary_factor"];
    config.erase("partial_rotary_factor");
    json sections = facts.at("rope.dimension_sections");
    if (sections.is_array() && sections.size() == 4) {  // the last one has no axis
        sections.erase(sections.begin() + 3);
        rope["mrope_section"] = std::move(sections);
        rope["mrope_interleaved"] = true;
    }
    if (config.contains("rope_scaling")) rope.update(config["rope_scaling"]);
    config.erase("rope_scaling");
    config["rope_parameters"] = std::move(rope);
}

void finish_cohere2(const GgufFacts& facts, json& config) {
    config["layer_types"] = layer_types(facts, 4, 3);
}

void finish_stablelm(const GgufFacts& facts, json& config) {
    config["use_parallel_residual"] = !facts.has("blk.0.ffn_norm.weight");
    if (!config.contains("partial_rotary_factor")) config["partial_rotary_factor"] = 1.0;
}

void finish_falcon(const GgufFacts& facts, json& config) {
    const std::uint64_t key_heads = facts.key_heads();
    const bool is_new = config["new_decoder_architecture"];
    config["multi_query"] = is_new || key_heads == 1;
    config["num_kv_heads"] = is_new || key_heads != 1 ? key_heads : facts.heads();
}

void finish_mpt(const GgufFacts& facts, json& config) {
    const std::uint64_t width = facts.whole("embedding_length");
    if (facts.key_heads() != facts.heads())
        facts.fail("attention.head_count_kv", std::to_string(facts.key_heads()),
                   std::to_string(facts.heads()));
    const double alibi = facts.number("attention.max_alibi_bias", 0),
                 clip = facts.number("attention.clamp_kqv", 0);
    config["attn_config"] = {{"alibi", alibi > 0},
                             {"alibi_bias_max", alibi > 0 ? json(alibi) : json(8)},
                             {"attn_type", "multihead_attention"},
                             {"clip_qkv", clip > 0 ? json(clip) : json()},
                             {"softmax_scale", nullptr},
                             {"qk_ln", false},
                             {"prefix_lm", false}};
    const std::uint64_t inner = facts.whole("feed_forward_length", 4 * width);
    if (inner % width != 0)
        facts.fail("feed_forward_length", std::to_string(inner),
                   "a multiple of " + std::to_string(width));
    config["expansion_ratio"] = inner / width;
    config["no_bias"] = !facts.has("blk.0.attn_qkv.bias");
}

void finish_phi3(const GgufFacts& facts, json& config) {
    const StoredArray* const long_factors = facts.file().find("rope_factors_long.weight");
    const StoredArray* const short_factors = facts.file().find("rope_factors_short.weight");
    if ((long_factors == nullptr) != (short_factors == nullptr))
        throw Error(ErrorKind::input, facts.file().name,
                    "one of rope_factors_long.weight and rope_factors_short.weight; expected both");
    if (long_factors == nullptr) return;
    config["rope_scaling"] = {{"rope_type", "longrope"},
                              {"long_factor", facts.decimals(*long_factors)},
                              {"short_factor", facts.decimals(*short_factors)}};
    config["original_max_position_embeddings"] =
        facts.whole("rope.scaling.original_context_length", facts.whole("context_length"));
}

void finish_bert(const GgufFacts& facts, json& config) {
    const StoredArray* const types = facts.file().find("token_types.weight");
    if (types != nullptr && types->shape.size() == 2) config["type_vocab_size"] = types->shape[0];
}

/// Members that are computed.
struct Finish {
    std::string_view model_type;
    void (*write)(const GgufFacts& facts, json& config);
};
constexpr Finish finishes[] = {
    {"llama", finish_llama},       {"granite", finish_llama},      {"qwen3_5_text", finish_qwen35},
    {"gemma2", finish_gemma2},     {"gemma3_text", finish_gemma3}, {"gpt_oss", finish_gpt_oss},
    {"phi3", finish_phi3},         {"falcon", finish_falcon},      {"mpt", finish_mpt},
    {"stablelm", finish_stablelm}, {"cohere2", finish_cohere2},    {"bert", finish_bert},
    {"nomic_bert", finish_bert}};

class ConfigWriter {
public:
    explicit ConfigWriter(const GgufFacts& facts) : facts_(facts), config_(facts.config()) {}

    json write() {
        config_["model_type"] = facts_.model_type();
        require_epsilon();
        for (const auto& [key, value] : facts_.members().items()) write_member(key);
        write_words();
        write_rotation();
        const json shown = facts_.shown();
        for (const auto& [key, tensor] : shown.items()) config_[key] = facts_.has(tensor);
        for (const Finish& finish : finishes)
            if (finish.model_type == facts_.model_type()) finish.write(facts_, config_);
        return std::move(config_);
    }

private:
    /// llama.cpp requires it too: no default of a class in config.json is that of a GGUF file.
    void require_epsilon() const {
        const char* const key = facts_.is("layer_norms") ? "attention.layer_norm_epsilon"
                                                         : "attention.layer_norm_rms_epsilon";
        if (!facts_.at(key).is_number() || !(facts_.number(key, 0) > 0))
            facts_.fail(key, facts_.at(key).is_null() ? "missing" : facts_.at(key).dump(),
                        "a number above 0");
    }

    void write_member(const std::string& key) {
        const json* const member = facts_.find("keys", key);
        if (member == nullptr)
            throw Error(ErrorKind::unsupported, facts_.file().name, "the key ",
                        one_line(shortened(facts_.architecture() + "." + key, 80)),
                        " may change the numbers; expected a model without it");
        const std::string name = *member;
        if (name.empty() || config_.contains(name)) return;
        const json value = facts_.at(key);
        if (!value.is_number() && !value.is_boolean() && !value.is_string())
            facts_.fail(key, "not a number", "one");
        config_[name] = value;
    }

    void write_words() {
        const StoredArray* const words = facts_.file().find("token_embd.weight");
        if (words != nullptr && words->shape.size() == 2) config_["vocab_size"] = words->shape[0];
        config_["tie_word_embeddings"] = !facts_.has("output.weight");
        const json& metadata = *facts_.file().gguf_metadata;
        for (const char* id : {"bos_token_id", "eos_token_id"}) {
            const auto found = metadata.find(std::string("tokenizer.ggml.") + id);
            if (found != metadata.end() && found->is_number_integer()) config_[id] = *found;
        }
    }

    void write_rotation() {
        const std::uint64_t rotated = facts_.whole("rope.dimension_count", facts_.head_dim());
        if (rotated % 2 != 0 || rotated > facts_.head_dim())
            facts_.fail(
                "rope.dimension_count", std::to_string(rotated),
                "an even number up to the width of heads " + std::to_string(facts_.head_dim()));
        json scaling = scaling_of_keys();
        if (rotated != facts_.head_dim()) {
            config_["partial_rotary_factor"] =
                static_cast<double>(rotated) / static_cast<double>(facts_.head_dim());
            // Of a part that classes with rope_type "default" would not read.
            if (scaling.is_null() && !facts_.file().find("rope_freqs.weight"))
                scaling = {{"rope_type", "divisors"},
                           {"divisors", std::vector<double>(rotated / 2, 1.0)}};
        }
        if (const StoredArray* divisors = facts_.file().find("rope_freqs.weight")) {
            if (!scaling.is_null())
                facts_.fail("rope.scaling.type", "set in a file with rope_freqs.weight",
                            "one of them");
            scaling = {{"rope_type", "divisors"}, {"divisors", facts_.elements(*divisors)}};
        }
        if (!scaling.is_null()) config_["rope_scaling"] = std::move(scaling);
    }

    json scaling_of_keys() const {
        json type = facts_.at("rope.scaling.type");
        const double legacy = facts_.number("rope.scale_linear", 1);
        const double factor = facts_.number("rope.scaling.factor", legacy);
        if (type.is_null() && legacy != 1) type = "linear";
        if (type.is_null() || type == "none" || type == "longrope") return {};
        if (type == "linear") return {{"rope_type", "linear"}, {"factor", factor}};
        if (type != "yarn")
            facts_.fail("rope.scaling.type",
                        shortened(type.dump(-1, ' ', true, json::error_handler_t::replace)),
                        "none, linear, yarn or longrope");
        json yarn{{"rope_type", "yarn"},
                  {"factor", factor},
                  {"beta_fast", facts_.number("rope.scaling.yarn_beta_fast", 32)},
                  {"beta_slow", facts_.number("rope.scaling.yarn_beta_slow", 1)}};
        if (!facts_.at("rope.scaling.original_context_length").is_null())
            yarn["original_max_position_embeddings"] =
                facts_.whole("rope.scaling.original_context_length");
        const double attention = facts_.number("rope.scaling.attn_factor", 1);
        if (attention != 1)
            yarn["attention_factor"] = attention * (1 + 0.1 * std::log(std::max(factor, 1.0)));
        return yarn;
    }

    const GgufFacts& facts_;
    json config_;
};

}  // namespace

ModelFiles gguf_model(ArrayFile file) {
    if (file.gguf_metadata == nullptr)
        throw Error(ErrorKind::input, file.name, "is not a GGUF file; expected one");
    file.index_names();
    const GgufFacts facts(file);
    const std::uint64_t value_width = facts.whole("attention.value_length", facts.head_dim());
    if (value_width != facts.head_dim())
        facts.fail("attention.value_length", std::to_string(value_width),
                   std::to_string(facts.head_dim()) + ", the width of keys");
    if (facts.key_heads() > facts.heads() || facts.heads() % facts.key_heads() != 0)
        facts.fail("attention.head_count_kv", std::to_string(facts.key_heads()),
                   "a divisor of " + std::to_string(facts.heads()) + " heads");
    if (facts.at("attention.causal") == false && !facts.is("may_be_encoder"))
        facts.fail("attention.causal", "false", "true for " + facts.architecture());
    ModelFiles model;
    model.config = ConfigWriter(facts).write();
    model.tensors = published_tensors(facts);
    model.tokenizer_metadata = json::object();
    model.norms_have_sums = facts.is("norms_plus_one");
    for (const auto& [key, value] : file.gguf_metadata->items())
        if (key.starts_with("tokenizer.")) model.tokenizer_metadata[key] = value;
    return model;
}

ModelFiles open_gguf_model(const std::string& path, const Access& access) {
    return gguf_model(open_gguf(Bytes::open(path, access)));
}

}  // namespace attn::io
