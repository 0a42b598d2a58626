// What a batch reads beside its requests, held against the file that it writes, before that is
// begun anew.
#pragma once

#include "cli/batch/batch.hpp"
#include "cli/batch/stop.hpp"
#include "io/model/loaded_models.hpp"

namespace attn::cli {

/// What the flags name: operands and a model's files. Errors: WrittenFile, for the file that
/// `access` of the defaults says is written; what else is wrong with them the records say.
void check_flags(const BatchRequest& batch, io::LoadedModels& models);

/// The same of what the requests in regular files name. Others are known only when they come.
void check_records(const BatchRequest& batch, io::LoadedModels& models, const Stop& stop);

}  // namespace attn::cli
