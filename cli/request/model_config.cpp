// A published model's config.json; see model_config.hpp. Names and defaults are those of
// transformers' GPT2Config, LlamaConfig, MistralConfig, Qwen2Config, BertConfig and GPTNeoXConfig.
#include "cli/request/model_config.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/request/apply.hpp"
#include "cli/request/model_config_keys.hpp"
#include "cli/request/options.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

/// The classes' own values, for keys that a file does not have.
constexpr std::uint64_t default_window = 4096, default_max_window_layers = 28;
constexpr double default_neox_part = 0.25;

class ConfigReader {
public:
    ConfigReader(Request& request, const io::ArrayFile& file, const io::ModelLayer& layer,
                 const std::string& path, const json& config)
        : request_(request), file_(file), layer_(layer), number_(layer.number.value_or(0)),
          path_(path), config_(config) {}

    void apply() {
        find_type();
        for (const auto& [key, value] : config_.items())
            if (const std::string expected = problem_of_key(key, value, type_); !expected.empty())
                fail(key, value, expected);
        apply_heads();
        apply_norm();
        apply_scale();
        apply_causal();
        apply_window();
        if ((type_ & rotary) != 0) apply_rope();
        check_biases();
    }

private:
    [[noreturn]] void fail(const std::string& key, const json& found,
                           const std::string& expected) const {
        throw Error(ErrorKind::input, path_,
                    io::one_line(key) + " is " + io::shortened(found.dump()) + "; expected " +
                        expected + ", or --model-config none and flags");
    }
    [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
        fail(key, at(key), expected);
    }

    json at(const std::string& key) const { return config_.value(key, json()); }

    void find_type() {
        std::string expected;
        for (const auto& [name, of, bit] : model_types) {
            if (of != layer_.rule->family) continue;
            if (at("model_type") == name) {
                type_ = bit;
                return;
            }
            expected += (expected.empty() ? "" : ", ") + std::string(name);
        }
        fail("model_type", expected + " as the tensors' names say");
    }

    /// The value of `key` becomes the setting, unless a flag or a key of the request has set it.
    void fill(const std::string& setting, const std::string& key, const json& value) {
        if (request_.has(setting) || value.is_null()) return;
        const json& said = at(key).is_null() ? value : at(key);
        const std::string place =
            path_ + ": " + key + " " + io::shortened(said.is_object() ? value.dump() : said.dump());
        apply_said(request_, setting, value, place);
    }
    void fill(const std::string& setting, const std::string& key) { fill(setting, key, at(key)); }

    bool flag(const std::string& key, bool otherwise) const {
        const json value = at(key);
        if (!value.is_null() && !value.is_boolean()) fail(key, "true or false");
        return value.is_null() ? otherwise : value.get<bool>();
    }

    std::uint64_t whole(const std::string& key, std::uint64_t lowest) const {
        constexpr std::uint64_t highest = std::uint64_t{1} << 31;
        const json value = at(key);
        const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= lowest &&
                          value.get<std::uint64_t>() <= highest;
        if (!fits) fail(key, "a whole number from " + std::to_string(lowest) + " to 2147483648");
        return value.get<std::uint64_t>();
    }

    /// Key heads and the width of a head belong to the config's own number of heads.
    void apply_heads() {
        if (request_.has("heads")) return;
        const bool of_gpt2 = type_ == gpt2;
        const std::string heads_key = of_gpt2 ? "n_head" : "num_attention_heads";
        const std::string width_key = of_gpt2 ? "n_embd" : "hidden_size";
        fill("heads", heads_key);
        if ((type_ & llama_like) != 0) fill("kv_heads", "num_key_value_heads");
        if (at(heads_key).is_null()) return;
        const std::uint64_t heads = whole(heads_key, 1);
        const std::uint64_t head_dim = at(width_key).is_null() ? 0 : whole(width_key, 1) / heads;
        if (at("head_dim").is_null()) {
            if (head_dim != 0) fill("d_k", width_key, head_dim * heads);
            return;
        }
        if (type_ == neox && whole("head_dim", 1) != head_dim)
            fail("head_dim", "a head's part of hidden_size, " + std::to_string(head_dim));
        fill("d_k", "head_dim", whole("head_dim", 1) * heads);
    }

    void apply_norm() {
        fill("norm_eps", type_ == gpt2               ? "layer_norm_epsilon"
                         : (type_ & llama_like) != 0 ? "rms_norm_eps"
                                                     : "layer_norm_eps");
    }

    void apply_scale() {
        if (type_ != gpt2) return;
        const bool by_layer = flag("scale_attn_by_inverse_layer_idx", false);
        const bool unscaled = !flag("scale_attn_weights", true);
        if (!unscaled && !by_layer) return;
        const std::uint64_t heads = request_.settings.heads.value_or(1);
        double scale = unscaled ? 1
                                : 1 / std::sqrt(static_cast<double>(whole("n_embd", 1)) /
                                                static_cast<double>(heads));
        if (by_layer) scale /= static_cast<double>(number_ + 1);
        fill("scale", unscaled ? "scale_attn_weights" : "scale_attn_by_inverse_layer_idx", scale);
    }

    /// A BERT that is a decoder looks back only.
    void apply_causal() {
        if (type_ != bert) return;
        if (!at("position_embedding_type").is_null() && at("position_embedding_type") != "absolute")
            fail("position_embedding_type", "\"absolute\"");
        if (flag("is_decoder", false) && request_.settings.mode == Mode::multihead)
            fill("causal", "is_decoder");
    }

    /// A query sees as many keys, its own included; nothing where it sees all before it.
    std::optional<std::uint64_t> window() const {
        const bool of_qwen = type_ == qwen2, of_mistral = type_ == mistral;
        if (!of_qwen && !of_mistral) return std::nullopt;
        if (of_qwen && !flag("use_sliding_window", false)) return std::nullopt;
        if (of_qwen && at("layer_types").is_null()) {
            const std::uint64_t first = config_.contains("max_window_layers")
                                            ? whole("max_window_layers", 0)
                                            : default_max_window_layers;
            if (number_ < first) return std::nullopt;
        }
        if (!config_.contains("sliding_window")) return default_window;
        if (at("sliding_window").is_null()) return std::nullopt;
        return whole("sliding_window", 1);
    }

    void apply_window() {
        if (request_.has("window")) return;
        std::optional<std::uint64_t> size = window();
        const json types = at("layer_types");
        if (!types.is_null()) {
            const json type = types.is_array() && number_ < types.size() ? types[number_] : json();
            const bool is_full = type == "full_attention";
            if (type_ == qwen2 && is_full) size.reset();
            if (size ? type != "sliding_attention" : !is_full)
                fail("layer_types", std::string(size ? "sliding_attention" : "full_attention") +
                                        " for layer " + std::to_string(number_) +
                                        ", as the other keys say");
        }
        if (type_ == mistral && !size == flag("use_sliding_window", size.has_value()))
            fail("use_sliding_window", "what sliding_window says");
        if (size)
            fill("window", "sliding_window",
                 json::array({static_cast<std::int64_t>(*size) - 1, -1}));
    }

    /// Where rotary settings stand: newer files keep them in an object.
    std::string rope_key() const {
        for (const char* key : {"rope_scaling", "rope_parameters"})
            if (!at(key).is_null() && !at(key).is_object()) fail(key, "an object or null");
        const bool is_empty = at("rope_scaling").is_null() || at("rope_scaling").empty();
        const bool both = !is_empty && !at("rope_parameters").empty();
        if (both && at("rope_scaling") != at("rope_parameters"))
            fail("rope_scaling", "the same as rope_parameters");
        return is_empty ? "rope_parameters" : "rope_scaling";
    }

    /// One value, though several keys may say it: `in_object` of the rotary settings, `key` and, in
    /// files that say it again, `again`. Where neither of the first two is there it is `otherwise`.
    std::pair<std::string, json> agreed(const std::string& in_object, const std::string& key,
                                        const std::string& again, const json& otherwise) const {
        const json rope = at(rope_key());
        std::pair<std::string, json> found{rope_key() + "." + in_object, json()};
        if (rope.contains(in_object)) found.second = rope[in_object];
        if (found.second.is_null() && at(key).is_null()) {
            if (config_.contains(key) && !otherwise.is_null()) fail(key, "a number");
            found = {key, otherwise};
        }
        for (const std::string& name : {key, again}) {
            if (at(name).is_null()) continue;
            if (!found.second.is_null() && found.second != at(name))
                fail(name, found.second.dump() + " as " + found.first + " says");
            found = {name, at(name)};
        }
        return found;
    }

    void apply_rope() {
        apply_rope_scaling();
        fill("rope", "model_type", "half");
        const bool of_neox = type_ == neox;
        const auto [base_key, base] =
            agreed("rope_theta", of_neox ? "rotary_emb_base" : "rope_theta", "rope_theta",
                   default_rope_base);
        fill("rope_base", base_key, base);
        const std::string part_of = "partial_rotary_factor";
        const auto [part_key, part] = agreed(part_of, of_neox ? "rotary_pct" : part_of, part_of,
                                             of_neox ? json(default_neox_part) : json());
        if (request_.has("rope_dims") || part.is_null()) return;
        if (!of_neox && part != json(1)) fail(part_key, part, "1: all of a head is turned");
        if (!of_neox) return;
        if (!part.is_number() || !(part.get<double>() > 0) || part.get<double>() > 1)
            fail(part_key, part, "a part of a head, above 0 and at most 1");
        const double heads = static_cast<double>(whole("num_attention_heads", 1));
        const double of_head = static_cast<double>(whole("hidden_size", 1)) / heads;
        fill("rope_dims", part_key, std::floor(of_head * part.get<double>()));
    }

    /// {"rope_type": "linear", "factor": 2}, or Llama 3.1's; other kinds are not computed.
    void apply_rope_scaling() {
        const std::string key = rope_key();
        const json rope = at(key);
        const bool is_flag = request_.has("rope_scaling");
        for (const auto& [name, value] : rope.items())
            if (value.is_object())
                fail(key + "." + name, value, "settings that hold for all layers");
        if (rope.is_null() || is_flag) return;
        const json type = rope.contains("rope_type") ? rope["rope_type"]
                          : rope.contains("type")    ? rope["type"]
                          : rope.contains("factor")  ? json()
                                                     : json("default");
        if (rope.value("type", type) != type)
            fail(key + ".type", rope["type"], type.dump() + " as rope_type says");
        std::vector<std::string> parts{"factor"};
        if (type == "llama3")
            parts.insert(parts.end(), {"low_freq_factor", "high_freq_factor",
                                       "original_max_position_embeddings"});
        else if (type == "default")
            parts.clear();
        else if (type != "linear")
            throw Error(ErrorKind::input, path_,
                        key + ": rotary embedding of type " + io::shortened(type.dump()) +
                            ", which is not computed; expected \"default\", \"linear\" or "
                            "\"llama3\", or --rope-scaling");
        check_rope_keys(key, rope, parts);
        if (type == "llama3")
            agreed("original_max_position_embeddings", "original_max_position_embeddings",
                   "original_max_position_embeddings", json());
        json scaling = json::array();
        for (const std::string& part : parts) {
            if (!rope.contains(part) || !rope[part].is_number())
                throw Error(ErrorKind::input, path_,
                            key + " has no number " + part + "; expected one, or --rope-scaling");
            scaling.push_back(rope[part]);
        }
        if (!scaling.empty()) fill("rope_scaling", key, scaling);
    }

    void check_rope_keys(const std::string& key, const json& rope,
                         const std::vector<std::string>& parts) const {
        std::vector<std::string> known{"rope_type", "type", "rope_theta", "partial_rotary_factor",
                                       "original_max_position_embeddings"};
        known.insert(known.end(), parts.begin(), parts.end());
        for (const auto& [name, value] : rope.items()) {
            // A factor of 1 scales nothing, of whatever it is one.
            const bool has_no_effect =
                value.is_null() || (name.ends_with("factor") && value == json(1));
            if (std::find(known.begin(), known.end(), name) == known.end() && !has_no_effect)
                fail(key + "." + name, value,
                     "no such key, whose effect on the rotary embedding is not known");
        }
    }

    /// A bias that the class does not have is left out by it.
    void check_biases() const {
        const io::FamilyRule& rule = *layer_.rule;
        const bool all = type_ == llama  ? flag("attention_bias", false)
                         : type_ == neox ? flag("attention_bias", true)
                                         : type_ == gpt2 || type_ == bert;
        const auto check = [&](const std::string& name, bool expected) {
            if (expected || file_.find(name) == nullptr) return;
            if ((type_ & (llama | neox)) != 0)
                fail("attention_bias", "true, since the weights have \"" + name + "\"");
            fail("model_type", "one that has \"" + name + "\" as the weights");
        };
        for (const io::ProjectionNames& names : {rule.query, rule.key, rule.value})
            if (!names.bias.empty()) check(layer_.full(names.bias), all || type_ == qwen2);
        check(layer_.full_out(rule.out.bias), all);
    }

    Request& request_;
    const io::ArrayFile& file_;
    const io::ModelLayer& layer_;
    std::size_t number_;
    const std::string& path_;
    const json& config_;
    ModelTypes type_ = 0;
};

}  // namespace

void apply_model_config(Request& request, const io::ArrayFile& file, const io::ModelLayer& layer,
                        const std::string& path, const json& config) {
    ConfigReader(request, file, layer, path, config).apply();
}

void apply_saved_config(Request& request, const json& config, const std::string& path) {
    if (config.is_null()) return;
    const bool other_heads = request.has("heads");
    request.is_saved_model = true;
    for (const Option& option : options()) {
        const std::string key = option.key;
        const bool here = (option.modes & in(request.settings.mode)) != 0;
        if (!here || (option.use & as_saved) == 0) continue;
        if (!config.contains(key) || config[key].is_null() || request.has(key)) continue;
        if ((option.use & of_heads) != 0 && other_heads) continue;
        if (key.starts_with("rope_") && !request.settings.rope) continue;
        apply_said(request, key, config[key],
                   path + ": config " + key + " " + io::shortened(config[key].dump()));
    }
}

void apply_family_defaults(Request& request, io::Family family) {
    Settings& settings = request.settings;
    if (family == io::Family::bert && settings.mode == Mode::multihead && !request.has("causal"))
        settings.causal = false;
    const bool rotates =
        (family == io::Family::llama || family == io::Family::neox) && !request.is_saved_model;
    if (rotates && !request.has("rope")) settings.rope = Rope::half;
    if (request.norm_eps) return;
    switch (family) {
        case io::Family::llama: request.norm_eps = 1e-6; break;
        case io::Family::bert: request.norm_eps = 1e-12; break;
        default: request.norm_eps = 1e-5; break;
    }
}

}  // namespace attn::cli
