// The step that adds tokens around one or two texts: post_processor.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "io/tokenizer/part.hpp"
#include "io/tokenizer/setting.hpp"

namespace attn::io {

struct TypedToken {
    Token token;
    std::uint32_t type = 0;
};
using Encoding = std::vector<TypedToken>;

/// Takes the encodings of one text or of two, and makes at most `most` tokens of them. Errors: as
/// require_size.
using PostProcessor =
    std::function<std::vector<Encoding>(std::vector<Encoding>, bool add_special, std::size_t most)>;

/// Errors: kind input for invalid settings, kind unsupported for unknown ones.
PostProcessor read_post_processor(const Setting& setting);

}  // namespace attn::io
