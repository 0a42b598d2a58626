// A number that tells models apart.
#pragma once

#include <cstdint>

#include "cli/model/model.hpp"

namespace attn::cli {

/// Of the config, of the names, types, shapes and bytes of all tensors, and of the tokenizer if
/// there is one. It does not depend on how the tensors are divided into files. Errors: kind io.
std::uint64_t digest_of_model(const io::OpenModel& model);

}  // namespace attn::cli
