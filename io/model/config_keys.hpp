// Keys of published models' config.json: which affect the attention, and which of those are read,
// have no effect, or have values that are not computed here.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "io/model/family.hpp"

namespace attn::io {

/// The error of a key in a config of this type: the expected value. Empty if the value is read as a
/// setting, or does not change the attention. An unknown key is accepted if its words do not relate
/// to attention, or if it is null or empty; also if it is false or 0, unless that would disable a
/// feature of all supported attention.
std::string problem_of_key(const std::string& key, const nlohmann::json& value,
                           const ModelType& type);

/// Whether a key that is not known may change the attention, by its words and its value.
bool may_change_attention(const std::string& key, const nlohmann::json& value);

}  // namespace attn::io
