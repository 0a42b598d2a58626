// The settings that the tensors of a published model do not determine.
#pragma once

#include "cli/request/request.hpp"
#include "io/model/find_layer.hpp"
#include "io/read/array_file.hpp"

namespace attn::cli {

/// What is known about a model besides its tensors.
struct KnownModel {
    bool has_config = false;      ///< its config.json, or attn's metadata, was read
    bool has_head_norms = false;  ///< norms of queries or keys
    bool is_supported = true;     ///< false if its model type is known and not supported
};

/// Refuses a layer without a config if a setting is missing: a guess would change the answer.
/// Errors: kind usage at the first missing setting. The message lists the others and, for a
/// supported model, the usual values of its family.
void require_settings(const Request& request, const io::ArrayFile& file,
                      const io::ModelLayer& layer, const KnownModel& known);

}  // namespace attn::cli
