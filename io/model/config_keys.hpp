// Keys of published models' config.json: which say something of the attention, and which of those
// are read, change nothing, or have values that are not computed here.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "io/model/family.hpp"

namespace attn::io {

/// What is wrong with a key of a config of this type: what was expected instead of its value. Empty
/// where the value is read as a setting, or does not change the attention. A key that is not known
/// may pass where its words have nothing to do with attention, or where it is null or empty; or
/// false or 0, unless that switches off what every attention here does.
std::string problem_of_key(const std::string& key, const nlohmann::json& value,
                           const ModelType& type);

}  // namespace attn::io
