// A model's files, with the settings that a missing config.json would give.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "cli/request/request.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

/// The settings of a model without a config.
inline constexpr std::array<std::string_view, 5> model_settings{"family", "heads", "norm_eps",
                                                                "rope_base", "rope_scaling"};

/// Opens the model at `path`. Errors: those of open_model_folder; kind usage for settings that a
/// config gives, and for a family that needs a config.
io::ModelFolder open_asked_model(const Request& request, const std::string& path);

}  // namespace attn::cli
