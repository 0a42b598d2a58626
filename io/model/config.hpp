// The settings that a published model's config.json fixes for its attention layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/plan/settings.hpp"
#include "io/model/find_layer.hpp"

namespace attn::io {

/// The settings that a config fills in, in the order of reading: the first that does not fit is
/// reported.
class SettingStore {
public:
    virtual ~SettingStore() = default;
    /// Whether it is given by a source that takes precedence over a config.
    virtual bool has(std::string_view setting) const = 0;
    /// `place` is for errors. Errors: kind input if the value does not fit.
    virtual void store(std::string_view setting, const nlohmann::json& value,
                       const std::string& place) = 0;
    /// Everything stored so far.
    virtual const Settings& settings() const = 0;
};

/// Fills in unset settings from the members of `path`, a config.json of Hugging Face's
/// transformers: heads, key heads, rotary embedding, window, scale, epsilon of the norms. `layer`
/// is the layer found in `file`. Dropout is for training and stays off. Errors: kind input, for
/// keys that change, or may change, the numbers in an unsupported way; those of `store`.
const ModelType& read_model_config(SettingStore& store, const ArrayFile& file,
                                   const ModelLayer& layer, const std::string& path,
                                   const nlohmann::json& config);

/// The error of a config's model_type for tensors of this family; null: any family. Empty if it is
/// supported.
std::string problem_of_type(const nlohmann::json& config, const Family* family);

/// The members of one config.json, and their destination. Families use it to read keys of their
/// own.
class ConfigReader {
public:
    ConfigReader(SettingStore& store, const ArrayFile& file, const ModelLayer& layer,
                 const std::string& path, const nlohmann::json& config);
    const ModelType& read();

    [[noreturn]] void fail(const std::string& key, const nlohmann::json& found,
                           const std::string& expected) const;
    [[noreturn]] void fail(const std::string& key, const std::string& expected) const;

    /// The value of a key; null if there is none. Errors of the others: kind input, naming the key,
    /// if the value is of another kind or not from `lowest` to 2^31.
    nlohmann::json at(const std::string& key) const;
    bool flag(const std::string& key, bool otherwise) const;
    std::uint64_t whole(const std::string& key, std::uint64_t lowest) const;

    /// Stores the value of `key`, or one derived from it, as the setting, unless it is given.
    void fill(const std::string& setting, const std::string& key, const nlohmann::json& value);
    void fill(const std::string& setting, const std::string& key);
    /// The same for a value that follows from `given`, which errors quote.
    void fill_from(const std::string& setting, const std::string& key, const nlohmann::json& given,
                   const nlohmann::json& value);

    const Settings& settings() const { return store_.settings(); }
    std::uint64_t heads() const { return settings().heads.value_or(1); }
    std::size_t layer_number() const { return layer_.number.value_or(0); }

private:
    void find_type();
    nlohmann::json stored(const std::string& path) const;
    void read_heads();
    void read_positions();
    std::optional<std::uint64_t> window() const;
    void read_window();
    std::string rope_key() const;
    std::pair<std::string, nlohmann::json> agreed(const std::string& in_object,
                                                  const std::string& key, const std::string& again,
                                                  const nlohmann::json& otherwise) const;
    void read_rope();
    void read_rope_scaling();
    void check_rope_keys(const std::string& key, const nlohmann::json& rope,
                         const std::vector<std::string>& parts) const;
    void check_biases() const;

    SettingStore& store_;
    const ArrayFile& file_;
    const ModelLayer& layer_;
    const std::string& path_;
    const nlohmann::json& config_;
    const ModelType* type_ = nullptr;
};

}  // namespace attn::io
