// A model in a GGUF file as the model that Hugging Face's transformers has: config.json and tensors
// by their published names.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "io/file/access.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

struct ModelFiles {
    /// Tensors by their published names, with the published rows, columns and values: rotary rows
    /// of queries and keys in halves, experts one by one. Norms are as stored, see below.
    /// gpt-oss has its experts as io::dequantised gives them: `gate_up_proj` (experts, 2 width,
    /// hidden) with gate and up rows by turns, `down_proj` (experts, hidden, width).
    ArrayFile tensors;
    /// The members of config.json as transformers 4 wrote them (`rope_theta`, `rope_scaling`).
    /// Where the file divides the inverse frequencies (Llama 3), `rope_scaling` is {"rope_type":
    /// "divisors", "divisors": [...]}. gpt-oss has a `quantization_config` of mxfp4, which
    /// specifies the layout of its experts.
    nlohmann::json config;
    /// The metadata whose keys begin with "tokenizer.".
    nlohmann::json tokenizer_metadata;
    /// Norms to whose weights transformers adds 1 have the sum, which the difference would round.
    bool norms_have_sums = false;
};

/// The model at `path`, the first of its files. Errors: those of open_gguf; kind unsupported for
/// another architecture, with those that are supported; kind input for missing or wrong metadata,
/// and for a tensor that the architecture does not have.
ModelFiles open_gguf_model(const std::string& path, const Access& access = {});

/// The same for an open file.
ModelFiles gguf_model(ArrayFile file);

}  // namespace attn::io
