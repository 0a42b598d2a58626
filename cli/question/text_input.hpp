// Inputs without a file: random numbers, the embedded words of a text, and the built-in examples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/base/real_array.hpp"

namespace attn::cli {

struct TextInput {
    RealArray inputs;  ///< of a text, and of random numbers: their shape, without elements
    std::vector<std::int64_t> token_ids;  ///< of an embedded text; else empty
    std::vector<std::string> tokens;      ///< labels
};

/// The request with the text of its example and all defaults of the text's embedding. Errors: kind
/// usage for an unknown example.
Request with_text(Request request);

/// The words of the request's text. Without a text, the matrix of its example. Errors: kinds usage
/// and input, at the setting's location.
TextInput read_text(const Request& request);

/// The shape of --rand or --randn. Errors: kind usage for a shape of another rank; kind input if it
/// needs too much memory.
RealArray shape_of_draw(const Request& request);

/// Whether the inputs are drawn, once the memory of the whole question is known.
bool draws_inputs(const Request& request);

/// The matrix or batch of --rand or --randn; or the embedded words of the text, as from PyTorch's
/// nn.Embedding: (words, embed_dim).
RealArray draw_inputs(const Request& request, const std::vector<std::int64_t>& token_ids);

}  // namespace attn::cli
