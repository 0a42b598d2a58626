// The step that changes a text before it is split: normalizer.
#pragma once

#include "io/tokenizer/part.hpp"
#include "io/tokenizer/setting.hpp"

namespace attn::io {

/// Errors: kind input for invalid settings, kind unsupported for unknown ones.
Normalizer read_normalizer(const Setting& setting);

}  // namespace attn::io
