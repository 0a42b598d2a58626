// A model's config.json with the defaults of its configuration class.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/model/block.hpp"

namespace attn::io {

/// The members of a config, or of a part of it ("text_config"). A key that is missing from the file
/// has the default of its class in transformers. Keys that were read are marked.
class ModelConfig {
public:
    /// `location` is the file's path. If `type` is empty, the members give it.
    ModelConfig(std::string location, const nlohmann::json& members, std::string type = {});

    const std::string& type() const { return type_; }
    const std::string& location() const { return location_; }

    /// The value, null if neither the file nor the class gives one.
    const nlohmann::json& at(std::string_view key) const;
    /// Whether the file gives a value other than null.
    bool gives(std::string_view key) const;
    /// Whether the file has the key, even if its value is null.
    bool names(std::string_view key) const { return members_.contains(key); }
    /// Whether the class has the key, with a default.
    bool has_default(std::string_view key) const { return find(defaults_, key) != nullptr; }

    /// Whether the class has the key; true if the class is not known.
    bool has(std::string_view key) const {
        return defaults_.empty() || known_.contains(key) || names_.contains(key);
    }

    /// The name of a key in the file, or in files of the class: "n_layer" for num_hidden_layers.
    std::string name_of(std::string_view key) const;

    /// Errors: kind input if the value has another type, or is missing without a default.
    std::size_t whole(std::string_view key, std::optional<std::size_t> otherwise = {}) const;
    /// The same, at least 1.
    std::size_t positive(std::string_view key, std::optional<std::size_t> otherwise = {}) const;
    double number(std::string_view key, std::optional<double> otherwise = {}) const;
    bool flag(std::string_view key, bool otherwise = false) const;
    std::string text(std::string_view key, const std::string& otherwise = {}) const;
    /// An element of a list with one entry per layer.
    const nlohmann::json& of_layer(std::string_view key, std::size_t layer) const;

    /// The settings of the rotary embedding, for one type of layer, as transformers completes them:
    /// rope_scaling or else rope_parameters, with what keys outside say, as rope_theta. Without a
    /// type and in a class that has settings for each type: all of them, not completed.
    nlohmann::json rope(std::string_view layer_type = {}) const;
    /// Whether rope_type "default" turns a part of the columns by partial_rotary_factor.
    bool turns_part() const { return turns_part_ || defaults_.empty(); }

    /// A part that is itself a config. It has no members if the file lacks it.
    ModelConfig part(std::string_view key) const;

    /// Requires this value, or no value. Errors: kind input.
    void require(std::string_view key, const nlohmann::json& expected) const;
    /// Marks a key as read if it has this value.
    void pass_if(std::string_view key, const nlohmann::json& value) const {
        if (members_.value(key, nlohmann::json()) == value) read_.emplace(key);
    }
    /// Marks all keys of the class as read.
    void pass_known() const { read_.insert(known_.begin(), known_.end()); }
    /// `expected`: parts as those of `concat`.
    template <class... Parts>
    [[noreturn]] void fail(std::string_view key, const Parts&... expected) const {
        refuse(key, concat(expected...));
    }

    /// Errors: kind input for keys that were not read and may change the results.
    void check_unread() const;

private:
    [[noreturn]] void refuse(std::string_view key, const std::string& expected) const;
    const nlohmann::json* find(const nlohmann::json& members, std::string_view key) const;

    std::string location_, type_;
    nlohmann::json members_, defaults_ = nlohmann::json::object(), names_, parts_;
    std::set<std::string, std::less<>> known_, ignored_;
    bool turns_part_ = false;
    mutable std::set<std::string, std::less<>> read_;
};

/// Whether config_defaults.ndjson has the type.
bool has_config_defaults(std::string_view type);

/// The content of model_rules.json.
const nlohmann::json& model_rules();

// The rotary embedding that a config describes.

/// The rotation of the first partial_rotary_factor * `width` columns, from the rotary `settings` of
/// the config. Types: default, linear, dynamic, yarn, longrope, llama3 and proportional, as
/// transformers' modeling_rope_utils computes them. `tokens` is the length of the sequence, on
/// which dynamic and longrope depend. Errors: kind input for other types and missing settings.
Rotation rotation_of(const ModelConfig& config, const nlohmann::json& settings, std::size_t width,
                     Rope pairs, std::size_t tokens);

/// A length of the sequence for which the config gives the same angles as for `tokens`.
std::size_t length_of_angles(const ModelConfig& config, std::size_t tokens);

/// Reads rope_parameters, or a list F or F,LOW,HIGH,LENGTH. Returns what is wrong with them, or an
/// empty string. `is_model`: keys of other rope_types have no effect.
std::string read_rope_scaling(const nlohmann::json& given, bool is_model, RopeScaling& to);

}  // namespace attn::io
