// The files of a model, as the flags of `attn model` specify them.
#pragma once

#include <string>

#include "cli/request/request.hpp"
#include "io/transformer/model.hpp"

namespace attn::cli {

/// Opens the model at `path`. Errors: those of open_model_folder; kind usage for settings that a
/// config gives, and for a family that needs a config.
io::ModelFolder open_asked_model(const Request& request, const std::string& path);

}  // namespace attn::cli
