// Where the script of a text changes.
#pragma once

#include <string_view>

#include "io/tokenizer/pattern.hpp"

namespace attn::io {

/// Runs of one script, each with the blanks after it, and before the first of them what has
/// none, as a match. Han, Hiragana and Katakana count as one.
Matches find_scripts(std::string_view text);

}  // namespace attn::io
