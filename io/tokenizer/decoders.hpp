// The step that turns tokens into a text: decoder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizer/setting.hpp"

namespace attn::io {

/// The texts of tokens, to be concatenated, of at most `most` bytes. Errors: as require_size.
using Decoder = std::function<std::vector<std::string>(std::vector<std::string>, std::size_t most)>;

/// Errors: kind input for invalid settings, kind unsupported for unknown ones.
Decoder read_decoder(const Setting& setting);

/// The text of bytes, with U+FFFD in place of bytes that are not valid UTF-8.
std::string lossy_utf8(std::string_view bytes);

std::size_t bytes_of(const std::vector<std::string>& texts);

/// Replaces every `from`. An empty `from` has no effect.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Replaces pieces such as <0xE2> by their bytes, if these are valid UTF-8.
std::vector<std::string> join_bytes(std::vector<std::string> tokens, std::size_t);

}  // namespace attn::io
