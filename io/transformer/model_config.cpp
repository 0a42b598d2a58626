#include "io/transformer/model_config.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "io/file/source.hpp"
#include "io/read/json_document.hpp"
#include "io/text/text.hpp"

namespace attn::io {

extern const std::string_view config_defaults;   // one line of JSON per type; embedded
extern const std::string_view model_rules_text;  // model_rules.json

namespace {

using nlohmann::json;

/// The line of a type, or empty.
std::string_view defaults_of(std::string_view type) {
    const std::string start = "{\"type\":\"" + std::string(type) + "\",";
    for (const std::string_view line : lines_of(config_defaults))
        if (line.starts_with(start)) return line;
    return {};
}

template <class Fits>
bool any_of_rule(const json& rule, const Fits& fits) {
    return std::ranges::any_of(split_text(rule.get_ref<const std::string&>(), ' '), fits);
}
template <class Fits>
bool any_of_rule(const char* rule, const Fits& fits) {
    return any_of_rule(model_rules()[rule], fits);
}

bool has_no_effect(std::string_view key) {
    for (const json& words : model_rules()["keys_without_effect"])
        if (any_of_rule(words, [&](std::string_view word) { return word == key; })) return true;
    return any_of_rule("ends_without_effect",
                       [&](std::string_view end) { return key.ends_with(end); }) ||
           any_of_rule("starts_without_effect",
                       [&](std::string_view start) { return key.starts_with(start); });
}

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

/// By words anywhere in words of the key, and at the start of one.
bool concerns_attention(const std::string& words) {
    return any_of_rule("attention_inside",
                       [&](std::string_view word) { return words.find(word) != words.npos; }) ||
           any_of_rule("attention_at_start", [&](std::string_view word) {
               return words.find("_" + std::string(word)) != words.npos;
           });
}

/// Whether the value turns a feature off. False and 0 would change features that all supported
/// attention has: those with the words "always_there", except "not_always".
bool is_off(const std::string& key, const json& value, const std::string& words) {
    if (value.empty()) return true;  // null, [] or {}
    if (value == json(1) && (key.ends_with("multiplier") || key == "rope_scaling_factor"))
        return true;
    if (value != json(false) && value != json(0)) return false;
    return any_of_rule("not_always", [&](std::string_view other) { return other == key; }) ||
           !any_of_rule("always_there",
                        [&](std::string_view word) { return words.find(word) != words.npos; });
}

/// Whether a key that is not known may change the attention, by its words and its value.
bool may_change_attention(const std::string& key, const json& value) {
    const std::string words = words_of(key);
    return concerns_attention(words) && !is_off(key, value, words);
}

}  // namespace

const json& model_rules() {
    static const json rules = parse_own(model_rules_text);
    return rules;
}

bool has_config_defaults(std::string_view type) {
    return !defaults_of(type).empty();
}

ModelConfig::ModelConfig(std::string location, const json& members, std::string type)
    : location_(std::move(location)), type_(std::move(type)), members_(members) {
    if (type_.empty() && members_.contains("model_type") && members_["model_type"].is_string())
        type_ = members_["model_type"];
    // These classes still take an older name.
    if ((type_ == "bloom" || type_ == "falcon") && members_.contains("n_embed")) {
        read_.insert("n_embed");
        if (!members_.contains("hidden_size")) members_["hidden_size"] = members_["n_embed"];
    }
    const std::string_view line = defaults_of(type_);
    if (line.empty()) return;
    json row = parse_own(line);
    defaults_ = std::move(row["defaults"]);
    names_ = row.value("names", json::object());
    parts_ = row.value("parts", json::object());
    for (const auto& [key, value] : defaults_.items()) known_.insert(key);
    for (const json& key : row["derived"]) known_.insert(key.get<std::string>());
    for (const json& key : row.value("ignored", json::array()))
        ignored_.insert(key.get<std::string>());
    turns_part_ = row.value("turns_part", false);
}

const json* ModelConfig::find(const json& members, std::string_view key) const {
    read_.emplace(key);
    const auto own = members.find(key);
    const json* found = own == members.end() ? nullptr : &*own;
    for (const auto& [name, real] : names_.items()) {
        if (name != key && real != key) continue;
        const std::string& other = name == key ? real.get_ref<const std::string&>() : name;
        read_.insert(other);
        const auto same = members.find(other);
        if (same == members.end()) continue;
        if (found != nullptr && *found != *same)
            throw Error(ErrorKind::input, location_, key, " is ", shortened(found->dump()), " and ",
                        other, ", the same setting, is ", shortened(same->dump()),
                        "; expected one of them (use a copy without it: --model-config FILE)");
        found = &*same;
    }
    return found;
}

const json& ModelConfig::at(std::string_view key) const {
    static const json null;
    if (const json* own = find(members_, key)) return *own;
    if (const json* common = find(defaults_, key)) return *common;
    return null;
}

bool ModelConfig::gives(std::string_view key) const {
    const json* own = find(members_, key);
    return own != nullptr && !own->is_null();
}

std::string ModelConfig::name_of(std::string_view key) const {
    const auto other = names_.find(key);
    const bool has_other_name = !members_.contains(key) && other != names_.end();
    return has_other_name ? other->get<std::string>() : std::string(key);
}

void ModelConfig::refuse(std::string_view key, const std::string& expected) const {
    const json& found = at(key);
    throw Error(ErrorKind::input, location_, name_of(key),
                found.is_null() && !names(key) ? " is missing" : " is " + shortened(found.dump()),
                "; expected ", expected);
}

std::size_t ModelConfig::whole(std::string_view key, std::optional<std::size_t> otherwise) const {
    const json& value = at(key);
    if (value.is_null() && otherwise) return *otherwise;
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{1} << 31U)
        fail(key, "an integer from 0 to 2147483648");
    return value.get<std::size_t>();
}
std::size_t ModelConfig::positive(std::string_view key,
                                  std::optional<std::size_t> otherwise) const {
    const std::size_t value = whole(key, otherwise);
    if (value == 0) fail(key, "at least 1");
    return value;
}
double ModelConfig::number(std::string_view key, std::optional<double> otherwise) const {
    const json& value = at(key);
    if (value.is_null() && otherwise) return *otherwise;
    if (!value.is_number() || !std::isfinite(value.get<double>())) fail(key, "a finite number");
    return value.get<double>();
}
bool ModelConfig::flag(std::string_view key, bool otherwise) const {
    const json& value = at(key);
    if (value.is_null()) return !names(key) && otherwise;
    if (!value.is_boolean()) fail(key, "true or false");
    return value.get<bool>();
}
std::string ModelConfig::text(std::string_view key, const std::string& otherwise) const {
    const json& value = at(key);
    if (value.is_null()) return otherwise;
    if (!value.is_string()) fail(key, "a string");
    return value.get<std::string>();
}

const json& ModelConfig::of_layer(std::string_view key, std::size_t layer) const {
    const json& list = at(key);
    if (!list.is_array() || list.size() <= layer)
        fail(key, "a list with an entry for layer ", layer);
    return list[layer];
}

json ModelConfig::rope(std::string_view layer_type) const {
    const auto object_at = [&](const char* key) {
        const json& value = at(key);
        if (!value.is_null() && !value.is_object()) fail(key, "an object");
        return value;
    };
    const json common = defaults_.value("rope_parameters", json());
    const bool has_types = common.is_object() && common.contains("full_attention"),
               is_full = layer_type == "full_attention";
    json rope = object_at("rope_parameters"), scaling = object_at("rope_scaling");
    if (rope.is_null()) rope = common.is_null() ? json::object() : common;
    if (ignored_.contains("rope_scaling")) scaling = json();
    if (has_types) {
        if (layer_type.empty()) return rope;
        json own = rope.value(layer_type, json());
        if (own.is_null()) own = {{"rope_type", "default"}};
        if (!own.is_object() || (!scaling.is_null() && !rope.contains("full_attention")))
            fail("rope_parameters", "an object for each type of layer");
        if (!scaling.is_null() && (is_full || defaults_.contains("global_rope_theta")))
            own.update(scaling);
        rope = std::move(own);
    } else if (!scaling.empty()) {
        rope = std::move(scaling);
    }
    if (!has_types && rope.contains("full_attention"))
        fail(gives("rope_scaling") ? "rope_scaling" : "rope_parameters",
             "one object for all layers, as model_type ", type_, " has");
    if (!rope.contains("rope_type")) rope["rope_type"] = rope.value("type", json("default"));
    // What is missing is given by a key outside, in the file or among the defaults.
    struct Outside {
        const char *key, *setting;
        bool is_of_type;
    };
    const Outside all_outside[] = {{"rope_theta", "rope_theta", !has_types || is_full},
                                   {"global_rope_theta", "rope_theta", is_full},
                                   {"rope_local_base_freq", "rope_theta", !is_full},
                                   {"local_rope_theta", "rope_theta", !is_full},
                                   {"rotary_emb_base", "rope_theta", true},
                                   {"rotary_pct", "partial_rotary_factor", true},
                                   {"partial_rotary_factor", "partial_rotary_factor", true}};
    for (const auto& [key, setting, is_of_type] : all_outside) {
        const bool is_factor = std::string_view(setting) == "partial_rotary_factor",
                   is_own = std::string_view(key) == setting && (is_factor || defaults_.empty());
        // Files of classes with rotary_pct repeat it under the newer name.
        if (defaults_.contains("rotary_pct") && rope.contains(setting)) pass_if(key, rope[setting]);
        if ((!is_own && !defaults_.contains(key)) || rope.contains(setting)) continue;
        const json& value = at(key);
        const bool is_null = value.is_null() && (is_factor || !names(key));
        if (is_of_type && !ignored_.contains(key) && !is_null) rope[setting] = value;
    }
    if (has_types && !rope.contains("rope_theta") && common.contains(layer_type))
        rope["rope_theta"] = common[layer_type].value("rope_theta", json());
    constexpr const char* length = "original_max_position_embeddings";
    const json& type = rope["rope_type"];
    if (type == "llama3" || type == "yarn" || type == "longrope") {
        const json& outer = at(length);
        if (!has_types && (names(length) || !outer.is_null()))
            rope[length] = outer;
        else if (const std::string key = "max_position_embeddings"; !rope.contains(length))
            rope[length] = ignored_.contains(name_of(key)) ? *find(defaults_, key) : at(key);
    }
    return rope;
}

ModelConfig ModelConfig::part(std::string_view key) const {
    const json& members = at(key);
    if (!members.is_object() && !members.is_null()) fail(key, "an object");
    std::string type;
    if (members.is_object() && members.contains("model_type") && members["model_type"].is_string())
        type = members["model_type"];
    if (!has_config_defaults(type)) type = parts_.value(key, type);
    return ModelConfig(location_ + ": " + std::string(key),
                       members.is_object() ? members : json::object(), type);
}

void ModelConfig::require(std::string_view key, const json& expected) const {
    const json& value = at(key);
    if (value.is_null() || value == expected) return;
    fail(key, expected.dump(), ", which attn computes");
}

void ModelConfig::check_unread() const {
    for (const auto& [key, value] : members_.items()) {
        if (read_.contains(key) || value.is_null() || has_no_effect(key)) continue;
        if (value.is_object() && value.contains("model_type")) continue;
        if (key == "position_embedding_type" && value == "absolute") continue;
        const auto common = defaults_.find(key);
        if (common != defaults_.end() && *common == value) continue;
        if (!known_.contains(key) && !may_change_attention(key, value)) continue;
        throw Error(ErrorKind::input, location_, key, " is ", shortened(value.dump()),
                    ", whose effect attn does not compute; expected no such key",
                    common == defaults_.end() ? "" : ", or " + common->dump(),
                    " (use a copy without it: --model-config FILE)");
    }
}

}  // namespace attn::io
