// The settings that the tensors of a published model do not show.
#pragma once

#include "cli/request/request.hpp"
#include "io/model/find_layer.hpp"
#include "io/read/array_file.hpp"

namespace attn::cli {

/// What is known of a model besides its tensors.
struct KnownModel {
    bool has_config = false;   ///< its config.json, or attn's metadata, was read
    bool is_supported = true;  ///< false where its model type is known and is not computed
};

/// A guess would give other numbers, so a layer without a config needs every setting. Errors: kind
/// usage at the first setting that is missing, which lists the others and, of a supported model,
/// the values that its family usually has.
void require_settings(const Request& request, const io::ArrayFile& file,
                      const io::ModelLayer& layer, const KnownModel& known);

}  // namespace attn::cli
