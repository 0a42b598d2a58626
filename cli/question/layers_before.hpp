// The input of a model's layer, from the layers before it.
#pragma once

#include <cstddef>
#include <string>

#include "cli/request/request.hpp"
#include "core/base/tensor.hpp"

namespace attn::cli {

/// What the model at `path` gives to layer `layer` for the request's token ids, (tokens, width), in
/// the request's dtype. The layers before follow the model's config alone. Errors: those of
/// open_model_folder, OpenModel and run_model; kind usage for settings of the embedding and of
/// norms that the request overrides.
Array<double> hidden_states_before(const Request& request, const std::string& path,
                                   std::size_t layer);

}  // namespace attn::cli
