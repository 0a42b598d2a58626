// The config of a model without a config.json, from its tensors and from what they do not show.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/read/array_file.hpp"

namespace attn::io {

/// What the tensors do not show. `heads` is also the number of query heads in Meta's models.
struct LayoutSettings {
    std::optional<std::size_t> heads;
    std::optional<double> norm_eps, rope_base;
    std::vector<double> rope_scaling;  ///< as --rope-scaling
};

/// The config of `model_type` "nanogpt" or "meta". `params` is Meta's params.json, or null; the
/// settings precede it. Errors: kind input at `params_place` for keys of it that are not known;
/// kind input for missing tensors; kind usage for settings that are missing, which it lists.
nlohmann::json layout_config(std::string_view model_type, const ArrayFile& tensors,
                             const nlohmann::json& params, const std::string& params_place,
                             LayoutSettings settings);

}  // namespace attn::io
