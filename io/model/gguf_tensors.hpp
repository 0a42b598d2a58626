// The tensors of a GGUF file by their published names and in their published order.
#pragma once

#include "io/model/gguf_architectures.hpp"
#include "io/model/gguf_facts.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

/// The values are computed when they are read. Errors: kind input for a tensor that the
/// architecture does not have, or of another shape than its keys specify.
ArrayFile published_tensors(const GgufFacts& facts, const Architecture& architecture);

}  // namespace attn::io
