// Names and defaults are those of transformers' configuration classes, each of which is a row of
// its family.
#include "io/model/config.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/model/config_keys.hpp"
#include "io/model/embeddings.hpp"
#include "io/model/families.hpp"

namespace attn::io {
namespace {

using nlohmann::json;

/// The classes' defaults, for keys that a file does not have.
constexpr std::uint64_t default_window = 4096, default_max_window_layers = 28,
                        default_padding_id = 1;

}  // namespace

const ModelType& read_model_config(SettingStore& store, const ArrayFile& file,
                                   const ModelLayer& layer, const std::string& path,
                                   const json& config) {
    return ConfigReader(store, file, layer, path, config).read();
}

ConfigReader::ConfigReader(SettingStore& store, const ArrayFile& file, const ModelLayer& layer,
                           const std::string& path, const json& config)
    : store_(store), file_(file), layer_(layer), path_(path), config_(config) {}

const ModelType& ConfigReader::read() {
    find_type();
    for (const auto& [key, value] : config_.items())
        if (const std::string expected = problem_of_key(key, value, *type_); !expected.empty())
            fail(key, value, expected);
    read_heads();
    fill("norm_eps", std::string(type_->eps));
    if (type_->read_others != nullptr) type_->read_others(*this);
    read_window();
    const bool is_off = store_.has("rope") && !store_.settings().rope;
    if (!type_->rope.base.empty() && !is_off) read_rope();
    if (type_->has_padding_positions) read_positions();
    check_biases();
    return *type_;
}

void ConfigReader::fail(const std::string& key, const json& found,
                        const std::string& expected) const {
    throw Error(ErrorKind::input, path_,
                one_line(key) + " is " + shortened(found.dump()) + "; expected " + expected +
                    ", or --model-config none and every setting as a flag");
}
void ConfigReader::fail(const std::string& key, const std::string& expected) const {
    fail(key, at(key), expected);
}

json ConfigReader::at(const std::string& key) const {
    return config_.value(key, json());
}

std::string problem_of_type(const json& config, const Family* family) {
    const json type = config.is_object() ? config.value("model_type", json()) : json();
    if (!type.is_string()) return "has no model_type; expected one of " + supported_model_types();
    const std::string& name = type.get_ref<const std::string&>();
    const Family* const found = family_of_type(name);
    const std::string problem = "model type " + one_line(shortened(name));
    if (found == nullptr)
        return problem + " is not supported; supported: " + supported_model_types() +
               ", and those of attn help model";
    if (family == nullptr || found == family) return "";
    std::string expected;
    for (const ModelType& known : family->model_types)
        expected += (expected.empty() ? "" : ", ") + std::string(known.name);
    return problem + ", but the tensors' names are those of family " + std::string(family->name) +
           "; expected one of its types: " + expected;
}

void ConfigReader::find_type() {
    if (const std::string problem = problem_of_type(config_, layer_.family); !problem.empty())
        throw Error(ErrorKind::input, path_, problem);
    type_ = &layer_.family->model_types.front();
    for (const ModelType& type : layer_.family->model_types)
        if (at("model_type") == type.name) type_ = &type;
}

/// The value of a key, or of "object.key"; null if there is none.
json ConfigReader::stored(const std::string& path) const {
    const std::size_t dot = path.find('.');
    if (dot == std::string::npos) return at(path);
    const json object = at(path.substr(0, dot));
    return object.is_object() ? object.value(path.substr(dot + 1), json()) : json();
}

void ConfigReader::fill_from(const std::string& setting, const std::string& key, const json& given,
                             const json& value) {
    if (store_.has(setting) || value.is_null()) return;
    const char* const by_default = stored(key).is_null() ? " by default" : "";
    store_.store(setting, value, path_ + ": " + key + " " + shortened(given.dump()) + by_default);
}
void ConfigReader::fill(const std::string& setting, const std::string& key, const json& value) {
    const json given = stored(key);
    fill_from(setting, key, given.is_null() || given.is_object() ? value : given, value);
}
void ConfigReader::fill(const std::string& setting, const std::string& key) {
    fill(setting, key, at(key));
}

bool ConfigReader::flag(const std::string& key, bool otherwise) const {
    const json value = at(key);
    if (!value.is_null() && !value.is_boolean()) fail(key, "true or false");
    return value.is_null() ? otherwise : value.get<bool>();
}

std::uint64_t ConfigReader::whole(const std::string& key, std::uint64_t lowest) const {
    constexpr std::uint64_t highest = std::uint64_t{1} << 31;
    const json value = at(key);
    const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() >= lowest &&
                      value.get<std::uint64_t>() <= highest;
    if (!fits) fail(key, "an integer from " + std::to_string(lowest) + " to 2147483648");
    return value.get<std::uint64_t>();
}

/// Key heads and the width of a head apply to the config's number of heads.
void ConfigReader::read_heads() {
    if (store_.has("heads")) return;
    const std::string heads_key(type_->heads), width_key(type_->width);
    fill("heads", heads_key);
    if (!type_->kv_heads.empty()) fill("kv_heads", std::string(type_->kv_heads));
    if (at(heads_key).is_null()) return;
    const std::uint64_t of_all = whole(heads_key, 1);
    const std::uint64_t head_dim = at(width_key).is_null() ? 0 : whole(width_key, 1) / of_all;
    if (at("head_dim").is_null()) {
        if (head_dim != 0) fill("d_k", width_key, head_dim * of_all);
        return;
    }
    // A packed tensor of queries, keys and values determines it.
    const bool is_packed = layer_.names->packing != Packing::separate;
    if (is_packed && whole("head_dim", 1) != head_dim)
        fail("head_dim", "a head's part of hidden_size, " + std::to_string(head_dim));
    fill("d_k", "head_dim", whole("head_dim", 1) * of_all);
}

/// Padding has the position of its id, and tokens the positions after it.
void ConfigReader::read_positions() {
    const std::string key = "pad_token_id";
    const std::uint64_t padding =
        config_.contains(key) ? whole(key, 0) : std::uint64_t{default_padding_id};
    fill_from("position_offset", key, padding, padding + 1);
}

/// The number of keys that a query attends to, itself included; empty if it attends to all before
/// it.
std::optional<std::uint64_t> ConfigReader::window() const {
    if (type_->windows == Windows::none) return std::nullopt;
    const bool is_upper = type_->windows == Windows::upper;
    if (is_upper && !flag("use_sliding_window", false)) return std::nullopt;
    if (is_upper && at("layer_types").is_null()) {
        const std::uint64_t first = config_.contains("max_window_layers")
                                        ? whole("max_window_layers", 0)
                                        : default_max_window_layers;
        if (layer_number() < first) return std::nullopt;
    }
    if (!config_.contains("sliding_window")) return default_window;
    if (at("sliding_window").is_null()) return std::nullopt;
    return whole("sliding_window", 1);
}

void ConfigReader::read_window() {
    if (store_.has("window")) return;
    std::optional<std::uint64_t> size = window();
    const json types = at("layer_types");
    if (!types.is_null()) {
        const json type =
            types.is_array() && layer_number() < types.size() ? types[layer_number()] : json();
        const bool is_full = type == "full_attention";
        if (type_->windows == Windows::upper && is_full) size.reset();
        if (size ? type != "sliding_attention" : !is_full)
            fail("layer_types", std::string(size ? "sliding_attention" : "full_attention") +
                                    " for layer " + std::to_string(layer_number()) +
                                    ", as in the other keys");
    }
    if (type_->windows == Windows::all && !size == flag("use_sliding_window", size.has_value()))
        fail("use_sliding_window", "the value that sliding_window implies");
    if (size)
        fill("window", "sliding_window", json::array({static_cast<std::int64_t>(*size) - 1, -1}));
}

/// The location of the rotary settings: newer files keep them in an object.
std::string ConfigReader::rope_key() const {
    for (const char* key : {"rope_scaling", "rope_parameters"})
        if (!at(key).is_null() && !at(key).is_object()) fail(key, "an object or null");
    const bool is_empty = at("rope_scaling").is_null() || at("rope_scaling").empty();
    const bool both = !is_empty && !at("rope_parameters").empty();
    if (both && at("rope_scaling") != at("rope_parameters"))
        fail("rope_scaling", "the same as rope_parameters");
    return is_empty ? "rope_parameters" : "rope_scaling";
}

/// One value that several keys may give: `in_object` of the rotary settings, `key` and, in files
/// that repeat it, `again`. The default is `otherwise` if the first two are missing.
std::pair<std::string, json> ConfigReader::agreed(const std::string& in_object,
                                                  const std::string& key, const std::string& again,
                                                  const json& otherwise) const {
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
            fail(name, found.second.dump() + " as in " + found.first);
        found = {name, at(name)};
    }
    return found;
}

void ConfigReader::read_rope() {
    read_rope_scaling();
    fill("rope", "model_type", "half");
    const auto [base_key, base] =
        agreed("rope_theta", std::string(type_->rope.base), "rope_theta", default_rope_base);
    fill("rope_base", base_key, base);
    const bool is_part = layer_.family->rotates == Rotates::part_of_heads;
    const std::string part_of = "partial_rotary_factor";
    const auto [part_key, part] = agreed(part_of, std::string(type_->rope.part), part_of,
                                         is_part ? json(type_->rope.default_part) : json());
    if (store_.has("rope_dims") || part.is_null()) return;
    if (!is_part && part != json(1)) fail(part_key, part, "1: all of a head is turned");
    if (!is_part) return;
    if (!part.is_number() || !(part.get<double>() > 0) || part.get<double>() > 1)
        fail(part_key, part, "a part of a head, above 0 and at most 1");
    const double of_all = static_cast<double>(whole(std::string(type_->heads), 1));
    const double of_head = static_cast<double>(whole(std::string(type_->width), 1)) / of_all;
    fill_from("rope_dims", part_key, part, std::floor(of_head * part.get<double>()));
}

/// {"rope_type": "linear", "factor": 2}, or Llama 3.1's; other kinds are not computed.
void ConfigReader::read_rope_scaling() {
    const std::string key = rope_key();
    const json rope = at(key);
    const bool is_flag = store_.has("rope_scaling");
    for (const auto& [name, value] : rope.items())
        if (value.is_object()) fail(key + "." + name, value, "settings that hold for all layers");
    if (rope.is_null() || is_flag) return;
    const json type = rope.contains("rope_type") ? rope["rope_type"]
                      : rope.contains("type")    ? rope["type"]
                      : rope.contains("factor")  ? json()
                                                 : json("default");
    if (rope.value("type", type) != type)
        fail(key + ".type", rope["type"], type.dump() + " as in rope_type");
    std::vector<std::string> parts{"factor"};
    if (type == "llama3")
        parts.insert(parts.end(),
                     {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"});
    else if (type == "default")
        parts.clear();
    else if (type != "linear")
        throw Error(ErrorKind::input, path_,
                    key + ": rotary embedding of type " + shortened(type.dump()) +
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

/// Settings of the rotary embedding other than these may change it.
void ConfigReader::check_rope_keys(const std::string& key, const json& rope,
                                   const std::vector<std::string>& parts) const {
    std::vector<std::string> known{"rope_type", "type", "rope_theta", "partial_rotary_factor",
                                   "original_max_position_embeddings"};
    known.insert(known.end(), parts.begin(), parts.end());
    for (const auto& [name, value] : rope.items()) {
        // A factor of 1 scales nothing, for any type.
        const bool has_no_effect =
            value.is_null() || (name.ends_with("factor") && value == json(1));
        if (std::find(known.begin(), known.end(), name) == known.end() && !has_no_effect)
            fail(key + "." + name, value,
                 "no such key, whose effect on the rotary embedding is not known");
    }
}

/// The class ignores a bias that it does not have.
void ConfigReader::check_biases() const {
    const LayerNames& names = *layer_.names;
    Biases there = type_->biases;
    if (there.from_config) there.inputs = there.out = flag("attention_bias", there.inputs);
    const auto check = [&](const std::string& name, bool expected) {
        if (expected || file_.find(name) == nullptr) return;
        if (there.from_config)
            fail("attention_bias", "true, since the weights have \"" + name + "\"");
        fail("model_type", "one that has \"" + name + "\" as the weights");
    };
    for (const ProjectionNames& part : {names.query, names.key, names.value})
        if (!part.bias.empty()) check(layer_.full(part.bias), there.inputs);
    check(layer_.full_out(names.out.bias), there.out);
    if (const HeadNormNames norms = head_norm_names(file_, layer_))
        fail("model_type", "one that has \"" + norms.query + "\" as the weights");
}

}  // namespace attn::io
