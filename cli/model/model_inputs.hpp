// Arrays that models take besides or instead of token ids.
#pragma once

#include <span>
#include <string_view>

#include "cli/args/args.hpp"
#include "cli/request/request.hpp"
#include "core/model/model.hpp"

namespace attn::cli {

/// Reads the files that --pixel-values, --spatial-shapes, --input-values and --input-features name,
/// and notes their locations. Errors: those of files.
void read_input_arrays(const Args& args, Request& request, ModelInput& input);

/// Errors: kind usage if the input is not what the model needs: the arrays `needed`, and token ids
/// if `takes_ids`.
void check_input(const Args& args, const Request& request, std::span<const std::string_view> needed,
                 bool takes_ids, const ModelInput& input);

}  // namespace attn::cli
