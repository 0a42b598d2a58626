// Weights in few bits, as published in safetensors: arrays of their values replace those of codes
// and scales.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "io/read/array_file.hpp"

namespace attn::io {

/// The file with the values of its quantised weights as float32, computed when they are read:
///
/// - FP8: NAME with NAME_scale_inv or NAME_scale becomes e4m3 * scale. There is one scale for all,
///   for each row, or for each block of config's quantization_config.weight_block_size; blocks at
///   the edges may be smaller.
/// - MXFP4: NAME_blocks (..., rows, columns / 32, 16) with NAME_scales (..., rows, columns / 32)
///   becomes NAME (..., rows, columns). Rows are outputs: for gpt-oss this is the transpose of the
///   plain tensor.
///
/// Scales, those of activations included, are left out. Other arrays stay as they are, 8-bit floats
/// without a scale too if the config has no quantization_config; with one they are an error.
/// `config` is the model's config.json, or null. Errors: kind unsupported for GPTQ, AWQ,
/// bitsandbytes and other methods, by the config or by the names of tensors; kind input for a scale
/// of another shape.
ArrayFile dequantised(ArrayFile file, const nlohmann::json& config);

}  // namespace attn::io
