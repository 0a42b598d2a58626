// Checks the files that a batch reads, other than its requests, against the file that it writes,
// before that file is overwritten.
#pragma once

#include "cli/batch/batch.hpp"
#include "cli/batch/stop.hpp"
#include "io/model/loaded_models.hpp"

namespace attn::cli {

/// Checks the files that flags name: operands and a model's files. Errors: WrittenFile. Other
/// problems are reported by the records.
void check_flags(const BatchRequest& batch, io::LoadedModels& models);

/// Checks the files that requests in regular files name. Other requests are known only on arrival.
void check_records(const BatchRequest& batch, io::LoadedModels& models, const Stop& stop);

}  // namespace attn::cli
