// Inputs without a file: a text whose words are embedded, and the built-in examples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/base/real_array.hpp"

namespace attn::cli {

struct TextInput {
    RealArray inputs;
    std::vector<std::int64_t> token_ids;  ///< of a text; else empty
    std::vector<std::string> tokens;      ///< labels
};

/// The request with the text of its example, and with every default of the text's embedding.
/// Errors: kind usage, for an unknown example.
Request with_text(Request request);

/// The words of the request's text, embedded as PyTorch's nn.Embedding would: (words, embed_dim);
/// else the matrix of its example. Errors: kinds usage and input, at the setting's place.
TextInput read_text(const Request& request);

}  // namespace attn::cli
