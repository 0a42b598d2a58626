// What makes a text of tokens: decoder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizer/setting.hpp"

namespace attn::io {

/// Tokens as they are to be written one after the other.
using Decoder = std::function<std::vector<std::string>(std::vector<std::string>)>;

/// Errors: kind input for invalid settings, kind unsupported for unknown ones.
Decoder read_decoder(const Setting& setting);

/// The text of bytes that may not be UTF-8: U+FFFD replaces what is not.
std::string lossy_utf8(std::string_view bytes);

/// Replaces every `from`, which must not be empty to have an effect.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Replaces pieces such as <0xE2> by their bytes, where these are UTF-8.
std::vector<std::string> join_bytes(std::vector<std::string> tokens);

}  // namespace attn::io
