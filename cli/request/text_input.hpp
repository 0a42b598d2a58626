// Inputs without a file: a text whose words are embedded, and the built-in examples.
#pragma once

#include <string>

#include "cli/request/request.hpp"
#include "core/layer/operands.hpp"

namespace attn::cli {

/// Embeds the words as PyTorch's nn.Embedding would: (words, embed_dim). The request keeps the text
/// and every default that was used. Errors: kinds usage and input, at the setting's place.
void embed_text(Request& request, Operands& operands, const std::string& text);

/// Reads the example that the request names. Errors: kind usage, for an unknown one.
void read_example(Request& request, Operands& operands);

}  // namespace attn::cli
