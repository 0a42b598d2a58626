// A published model's config.json; see model_config.hpp. Names and defaults are those of
// transformers' GPT2Config, LlamaConfig, MistralConfig, Qwen2Config, BertConfig and GPTNeoXConfig.
#include "cli/model_config.hpp"

#include <array>
#include <cmath>
#include <string_view>

#include "cli/options.hpp"
#include "core/error.hpp"
#include "io/json_document.hpp"
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
    ConfigReader(Request& request, std::size_t layer, std::string path, json config)
        : request_(request), layer_(layer), path_(std::move(path)), config_(std::move(config)) {}

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
        const std::string place = path_ + ": " + key + " " + io::shortened(value.dump());
        const std::string problem = find_option(setting)->store(request_, value);
        if (!problem.empty()) throw Error(ErrorKind::input, place, problem);
        request_.places[setting] = place;
    }
    void fill(const std::string& setting, const std::string& key) { fill(setting, key, at(key)); }

    void require(const std::string& key, const json& value) const {
        if (!at(key).is_null() && at(key) != value) fail(key, value.dump());
    }

    double number(const std::string& key) const {
        if (!at(key).is_number() || !(at(key).get<double>() > 0)) fail(key, "a number above 0");
        return at(key).get<double>();
    }

    void apply_gpt2() {
        fill("heads", "n_head");
        fill("norm_eps", "layer_norm_epsilon");
        const json by_layer = at("scale_attn_by_inverse_layer_idx");
        const bool unscaled = at("scale_attn_weights") == false;
        if (!unscaled && by_layer != true) return;
        double scale = unscaled ? 1 : 1 / std::sqrt(number("n_embd") / number("n_head"));
        if (by_layer == true) scale /= static_cast<double>(layer_ + 1);
        fill("scale", "scale_attn_weights", scale);
    }

    void apply_llama() {
        fill("heads", "num_attention_heads");
        fill("kv_heads", "num_key_value_heads");
        fill("norm_eps", "rms_norm_eps");
        apply_rope("rope_theta", 10000);
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
        apply_rope(at("rotary_emb_base").is_null() ? "rope_theta" : "rotary_emb_base", 10000);
    }

    /// Newer files keep the rotary settings in an object of their own.
    void apply_rope(const std::string& base_key, double default_base) {
        if (request_.has("rope")) return;
        json parameters = at("rope_parameters");
        if (!parameters.is_object()) parameters = json::object();
        const json& scaling =
            parameters.contains("rope_type") ? config_["rope_parameters"] : at("rope_scaling");
        if (scaling.is_object()) {
            const json type = scaling.contains("rope_type") ? scaling["rope_type"]
                              : scaling.contains("type")    ? scaling["type"]
                                                            : json("default");
            if (type != "default")
                throw Error(ErrorKind::input, path_,
                            "rotary embedding of type " + io::shortened(type.dump()) +
                                ", which is not computed; expected \"default\", or --rope and "
                                "--rope-base");
        }
        fill("rope", "model_type", "half");
        json base = parameters.contains("rope_theta") ? parameters["rope_theta"] : at(base_key);
        fill("rope_base", base_key, base.is_null() ? json(default_base) : base);
        json part = at("rotary_pct").is_null() ? at("partial_rotary_factor") : at("rotary_pct");
        if (parameters.contains("partial_rotary_factor"))
            part = parameters["partial_rotary_factor"];
        const bool is_neox = at("model_type") == "gpt_neox";
        if (part.is_null() && is_neox) part = 0.25;
        if (part.is_null()) return;
        if (!part.is_number()) fail("rotary_pct", "a number");
        const double of_head = number("hidden_size") / number("num_attention_heads");
        fill("rope_dims", "rotary_pct", std::floor(of_head * part.get<double>()));
    }

    /// A query sees `sliding_window` keys, its own included.
    void apply_window() {
        const json window = at("sliding_window");
        if (window.is_null() || request_.has("window")) return;
        const bool of_qwen = at("model_type") == "qwen2";
        if (of_qwen && at("use_sliding_window") != true) return;
        const json types = at("layer_types");
        if (types.is_array() && layer_ < types.size()) {
            if (types[layer_] == "full_attention") return;
        } else if (of_qwen && at("max_window_layers").is_number_unsigned() &&
                   layer_ < at("max_window_layers").get<std::size_t>()) {
            return;
        }
        const double size = number("sliding_window");
        fill("window", "sliding_window", json::array({static_cast<std::int64_t>(size) - 1, -1}));
    }

    Request& request_;
    std::size_t layer_;
    std::string path_;
    json config_;
};

}  // namespace

void apply_model_config(Request& request, io::Family family, std::size_t layer,
                        const std::string& path) {
    const io::Source source = io::read_source(path);
    json config = json::parse(source.text.begin(), source.text.end(), nullptr, false);
    if (!config.is_object())
        throw Error(ErrorKind::input, path,
                    "is no JSON object; expected a model's config.json, or --model-config none");
    ConfigReader(request, layer, path, std::move(config)).apply(family);
}

void apply_family_defaults(Request& request, io::Family family) {
    Settings& settings = request.settings;
    if (family == io::Family::bert && settings.mode == Mode::multihead && !request.has("causal"))
        settings.causal = false;
    const bool rotates = family == io::Family::llama || family == io::Family::neox;
    if (rotates && !request.has("rope")) settings.rope = Rope::half;
    if (request.norm_eps) return;
    switch (family) {
        case io::Family::llama: request.norm_eps = 1e-6; break;
        case io::Family::bert: request.norm_eps = 1e-12; break;
        default: request.norm_eps = 1e-5; break;
    }
}

}  // namespace attn::cli
