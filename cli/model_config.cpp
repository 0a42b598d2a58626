// A published model's config.json; see model_config.hpp. Names and defaults are those of
// transformers' GPT2Config, LlamaConfig, MistralConfig, Qwen2Config, BertConfig and GPTNeoXConfig.
#include "cli/model_config.hpp"

#include <array>
#include <cmath>
#include <string_view>

#include "cli/options.hpp"
#include "core/error.hpp"
#include "io/source.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

struct ModelType {
    std::string_view name;
    io::Family family;
};
constexpr std::array<ModelType, 6> model_types{{{"gpt2", io::Family::gpt2},
                                                {"llama", io::Family::llama},
                                                {"mistral", io::Family::llama},
                                                {"qwen2", io::Family::llama},
                                                {"bert", io::Family::bert},
                                                {"gpt_neox", io::Family::neox}}};

class ConfigReader {
public:
    ConfigReader(Request& request, std::size_t layer, const std::string& path, const json& config)
        : request_(request), layer_(layer), path_(path), config_(config) {}

    void apply(io::Family family) {
        check_type(family);
        switch (family) {
            case io::Family::gpt2: return apply_gpt2();
            case io::Family::llama: return apply_llama();
            case io::Family::bert: return apply_bert();
            case io::Family::neox: return apply_neox();
            case io::Family::mha:
            case io::Family::notebook: break;
        }
    }

private:
    [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
        throw Error(ErrorKind::input, path_,
                    key + " is " + io::shortened(at(key).dump()) + "; expected " + expected +
                        ", or --model-config none and flags");
    }

    json at(const std::string& key) const { return config_.contains(key) ? config_[key] : json(); }

    void check_type(io::Family family) const {
        std::string expected;
        for (const auto& [name, of] : model_types) {
            if (of != family) continue;
            if (at("model_type") == name) return;
            expected += (expected.empty() ? "" : ", ") + std::string(name);
        }
        fail("model_type", expected + " as the tensors' names say");
    }

    /// The value of `key` becomes the setting, unless a flag or a key of the request has set it.
    void fill(const std::string& setting, const std::string& key, const json& value) {
        if (request_.has(setting) || value.is_null()) return;
        const json& said = at(key).is_null() ? value : at(key);
        const std::string place = path_ + ": " + key + " " + io::shortened(said.dump());
        const std::string problem = find_option(setting)->store(request_, value);
        if (!problem.empty()) throw Error(ErrorKind::input, place, problem);
        request_.places[setting] = place;
    }
    void fill(const std::string& setting, const std::string& key) { fill(setting, key, at(key)); }

    void require(const std::string& key, const json& value) const {
        if (!at(key).is_null() && at(key) != value) fail(key, value.dump());
    }

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

    double number(const std::string& key) const {
        if (!at(key).is_number() || !(at(key).get<double>() > 0)) fail(key, "a number above 0");
        return at(key).get<double>();
    }

    void apply_gpt2() {
        fill("heads", "n_head");
        fill("norm_eps", "layer_norm_epsilon");
        const bool by_layer = flag("scale_attn_by_inverse_layer_idx", false);
        const bool unscaled = !flag("scale_attn_weights", true);
        if (!unscaled && !by_layer) return;
        double scale = unscaled ? 1 : 1 / std::sqrt(number("n_embd") / number("n_head"));
        if (by_layer) scale /= static_cast<double>(layer_ + 1);
        fill("scale", "scale_attn_weights", scale);
    }

    void apply_llama() {
        // Key heads and the width of a head belong to the config's own number of heads.
        if (!request_.has("heads")) {
            fill("heads", "num_attention_heads");
            fill("kv_heads", "num_key_value_heads");
            if (!at("head_dim").is_null())
                fill("d_k", "head_dim", whole("head_dim", 1) * whole("num_attention_heads", 1));
        }
        fill("norm_eps", "rms_norm_eps");
        apply_rope();
        apply_window();
    }

    void apply_bert() {
        fill("heads", "num_attention_heads");
        fill("norm_eps", "layer_norm_eps");
        require("position_embedding_type", "absolute");
        require("is_decoder", false);
    }

    void apply_neox() {
        fill("heads", "num_attention_heads");
        fill("norm_eps", "layer_norm_eps");
        apply_rope();
    }

    /// {"rope_type": "linear", "factor": 2}, or Llama 3.1's; other kinds are not computed.
    void apply_rope_scaling(const std::string& key) {
        const json rope = at(key);
        if (rope.is_null() || request_.has("rope_scaling")) return;
        if (!rope.is_object()) fail(key, "an object or null");
        const json type = rope.contains("rope_type") ? rope["rope_type"]
                          : rope.contains("type")    ? rope["type"]
                          : rope.contains("factor")  ? json()
                                                     : json("default");
        if (type == "default") return;
        std::vector<std::string> parts{"factor"};
        if (type == "llama3")
            parts.insert(parts.end(), {"low_freq_factor", "high_freq_factor",
                                       "original_max_position_embeddings"});
        else if (type != "linear")
            throw Error(ErrorKind::input, path_,
                        key + ": rotary embedding of type " + io::shortened(type.dump()) +
                            ", which is not computed; expected \"default\", \"linear\" or "
                            "\"llama3\", or --rope-scaling");
        json scaling = json::array();
        for (const std::string& part : parts) {
            if (!rope.contains(part) || !rope[part].is_number())
                throw Error(ErrorKind::input, path_,
                            key + " has no number " + part + "; expected one, or --rope-scaling");
            scaling.push_back(rope[part]);
        }
        fill("rope_scaling", key, scaling);
    }

    /// Newer files keep the rotary settings in an object of their own.
    void apply_rope() {
        apply_rope_scaling("rope_scaling");
        apply_rope_scaling("rope_parameters");
        const json parameters = at("rope_parameters");
        const auto find = [&](const std::string& key) {
            return parameters.is_object() && parameters.contains(key) ? parameters[key] : at(key);
        };
        fill("rope", "model_type", "half");
        const std::string base = find("rope_theta").is_null() ? "rotary_emb_base" : "rope_theta";
        fill("rope_base", base, find(base).is_null() ? json(10000) : find(base));
        apply_rope_part(
            find("rotary_pct").is_null() ? "partial_rotary_factor" : "rotary_pct",
            find("rotary_pct").is_null() ? find("partial_rotary_factor") : find("rotary_pct"));
    }

    void apply_rope_part(const std::string& key, json part) {
        if (part.is_null() && at("model_type") == "gpt_neox") part = 0.25;
        if (part.is_null() || request_.has("rope_dims")) return;
        const bool fits = part.is_number() && part.get<double>() > 0 && part.get<double>() <= 1;
        if (!fits)
            throw Error(ErrorKind::input, path_,
                        key + " is " + io::shortened(part.dump()) +
                            "; expected a part of a head, above 0 and at most 1");
        const double of_head = number("hidden_size") / number("num_attention_heads");
        fill("rope_dims", key, std::floor(of_head * part.get<double>()));
    }

    /// A query sees `sliding_window` keys, its own included.
    void apply_window() {
        if (at("sliding_window").is_null() || request_.has("window")) return;
        const bool of_qwen = at("model_type") == "qwen2";
        if (of_qwen && !flag("use_sliding_window", false)) return;
        const json types = at("layer_types");
        if (!types.is_null()) {
            const json type = types.is_array() && layer_ < types.size() ? types[layer_] : json();
            if (type == "full_attention") return;
            if (type != "sliding_attention")
                fail("layer_types", "full_attention or sliding_attention for each layer");
        } else if (of_qwen && !at("max_window_layers").is_null() &&
                   layer_ < whole("max_window_layers", 0)) {
            return;
        }
        const auto size = static_cast<std::int64_t>(whole("sliding_window", 1));
        fill("window", "sliding_window", json::array({size - 1, -1}));
    }

    Request& request_;
    std::size_t layer_;
    const std::string& path_;
    const json& config_;
};

}  // namespace

void apply_model_config(Request& request, io::Family family, std::size_t layer,
                        const std::string& path, const json& config) {
    ConfigReader(request, layer, path, config).apply(family);
}

void apply_saved_config(Request& request, const json& config, const std::string& path) {
    if (config.is_null()) return;
    const bool other_heads = request.has("heads");
    request.is_saved_model = true;
    for (const char* key : {"heads", "kv_heads", "causal", "window", "scale", "softcap", "alibi",
                            "rope", "rope_base", "rope_dims", "rope_scaling", "sink"}) {
        const Option& option = *find_option(key);
        const bool here = (option.modes & in(request.settings.mode)) != 0;
        const std::string name = key;
        // These belong to the heads that they were written for.
        const bool of_heads = name == "kv_heads" || name == "scale" || name == "sink";
        if (!here || !config.contains(key) || config[key].is_null() || request.has(key)) continue;
        if (of_heads && other_heads) continue;
        if (name.starts_with("rope_") && !request.settings.rope) continue;
        const std::string place =
            path + ": config " + name + " " + io::shortened(config[key].dump());
        const std::string problem = option.store(request, config[key]);
        if (!problem.empty()) throw Error(ErrorKind::input, place, problem);
        request.places[name] = place;
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
