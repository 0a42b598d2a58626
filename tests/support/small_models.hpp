// The smallest model of every form of weights that attn reads.
#pragma once

#include "tests/support/run_attn.hpp"

namespace attn::test::small_models {

using nlohmann::json;

/// Numbers between -1 and 1 that look drawn and are the same each time.
json numbers(const std::vector<int>& shape, int seed, std::size_t axis = 0);

struct Model {
    std::string name, module, norm, embedding;
    json settings;  ///< that the tensors do not show, by the keys of a request
    Words harmless;
    std::map<std::string, std::vector<int>> tensors;
};

inline constexpr int width = 4;
inline const std::vector<int> square{width, width}, row{width};

std::vector<Model> models();
json weights_of(const Model& model);

/// A tensor that a model's file holds beside its parameters, as its library writes it.
json form_of(const std::string& name);

/// Of these weights, with the model's settings as flags.
Outcome run_model(const Model& model, const json& weights, const std::string& input,
                  const Words& more = {});

}  // namespace attn::test::small_models
