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

/// The settings that a config fills in, one after the other in the order in which it is read: the
/// first that does not fit is the one that shows.
class SettingStore {
public:
    virtual ~SettingStore() = default;
    /// Whether it has been said by something that a config does not overrule.
    virtual bool has(std::string_view setting) const = 0;
    /// `place` is for errors. Errors: kind input, where the value does not fit.
    virtual void store(std::string_view setting, const nlohmann::json& value,
                       const std::string& place) = 0;
    /// Everything stored so far.
    virtual const Settings& settings() const = 0;
};

/// Fills in what nothing else has set from the members of `path`, a config.json as Hugging Face's
/// transformers writes it: heads, key heads, rotary embedding, window, scale, epsilon of the norms.
/// `layer` is what the names of the weights in `file` show. Dropout is for training and is left
/// off. Errors: kind input, for keys that change, or may change, the numbers in a way that is not
/// computed here; those of `store`.
const ModelType& read_model_config(SettingStore& store, const ArrayFile& file,
                                   const ModelLayer& layer, const std::string& path,
                                   const nlohmann::json& config);

/// What is wrong with the model_type of a config, for tensors of this family; null: of any. Empty
/// where it is supported.
std::string problem_of_type(const nlohmann::json& config, const Family* family);

/// The members of one config.json, and where they go. A family reads by it what it alone has.
class ConfigReader {
public:
    ConfigReader(SettingStore& store, const ArrayFile& file, const ModelLayer& layer,
                 const std::string& path, const nlohmann::json& config);
    const ModelType& read();

    [[noreturn]] void fail(const std::string& key, const nlohmann::json& found,
                           const std::string& expected) const;
    [[noreturn]] void fail(const std::string& key, const std::string& expected) const;

    /// The value of a key; null where there is none. Errors of the others: kind input, naming the
    /// key, where the value is of another kind or beyond `lowest` to 2^31.
    nlohmann::json at(const std::string& key) const;
    bool flag(const std::string& key, bool otherwise) const;
    std::uint64_t whole(const std::string& key, std::uint64_t lowest) const;

    /// The value of `key`, or another one that it stands for, becomes the setting, unless that has
    /// been said.
    void fill(const std::string& setting, const std::string& key, const nlohmann::json& value);
    void fill(const std::string& setting, const std::string& key);
    /// The same where the value follows from `said`, which an error quotes.
    void fill_from(const std::string& setting, const std::string& key, const nlohmann::json& said,
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
