// Small models of each family, of data/models/families.ndjson.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace attn::test {

/// All cases; see tests/make_model_cases.py.
std::vector<nlohmann::json> model_cases();

/// Writes the case's model into a folder of the scratch folder.
void write_model(const nlohmann::json& model, const std::string& folder);

/// "3,1,4".
std::string ids_of(const nlohmann::json& model);

}  // namespace attn::test
