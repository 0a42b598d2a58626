// Where the script of a text changes.
#pragma once

#include <string_view>

#include "io/tokenizer/pattern.hpp"

namespace attn::io {

/// Runs of one script, each with the blanks after it, and before the first of them what belongs to
/// none, as a match. Han, Hiragana and Katakana count as one. Source: the library tokenizers, whose
/// Unicode is older than PCRE2's.
Matches find_scripts(std::string_view text);

}  // namespace attn::io
