// Splits a text where its script changes.
#pragma once

#include <string_view>

#include "io/tokenizer/pattern.hpp"

namespace attn::io {

/// Each run of one script with the blanks after it is a match. The first run includes characters
/// without a script before it. Han, Hiragana and Katakana count as one script.
Matches find_scripts(std::string_view text);

}  // namespace attn::io
