// Small models of each family, of data/models/families.ndjson.
#pragma once

#include "tests/support/drawn_model.hpp"

namespace attn::test {

/// All cases; see tests/make_model_cases.py.
std::vector<nlohmann::json> model_cases();

/// Those of data/models/generation.ndjson; see tests/make_generation_cases.py.
std::vector<nlohmann::json> generation_cases();
/// Both.
std::vector<nlohmann::json> all_model_cases();

/// The one of model_cases with this name.
nlohmann::json model_case(const std::string& name);

/// attn model on the folder `model` with the input of a case, of which arrays are written to files.
std::vector<std::string> words_of(const nlohmann::json& model);

/// "3,1,4".
std::string ids_of(const nlohmann::json& model);

/// Whether the model has state-space layers, which are not computed.
bool is_refused(const nlohmann::json& model);

}  // namespace attn::test
