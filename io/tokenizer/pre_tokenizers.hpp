// The step that splits a text into words: pre_tokenizer.
#pragma once

#include <string_view>

#include "io/tokenizer/part.hpp"
#include "io/tokenizer/setting.hpp"

namespace attn::io {

/// Errors: kind input for invalid settings, kind unsupported for unknown ones.
PreTokenizer read_pre_tokenizer(const Setting& setting);

/// Splits with a regular expression for words, and writes bytes in GPT-2's alphabet.
PreTokenizer byte_level_words(const std::vector<std::string_view>& expressions);

/// GPT-2's regular expression for words.
extern const char* const gpt2_words;

}  // namespace attn::io
