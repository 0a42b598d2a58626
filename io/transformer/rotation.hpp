// The rotary embedding that a config describes.
#pragma once

#include <cstddef>

#include <nlohmann/json.hpp>

#include "core/model/block.hpp"
#include "io/transformer/model_config.hpp"

namespace attn::io {

/// The rotation of the first partial_rotary_factor * `width` columns, from the rotary `settings` of
/// the config. Types: default, linear, dynamic, yarn, longrope, llama3 and proportional, as
/// transformers' modeling_rope_utils computes them. `tokens` is the length of the sequence, on
/// which dynamic and longrope depend. Errors: kind input for other types and missing settings.
Rotation rotation_of(const ModelConfig& config, const nlohmann::json& settings, std::size_t width,
                     Rope pairs, std::size_t tokens);

/// A length of the sequence for which the config gives the same angles as for `tokens`.
std::size_t length_of_angles(const ModelConfig& config, std::size_t tokens);

/// YaRN's factor on cosine and sine, or on scores: 0.1 mscale ln(factor) + 1 for factors above 1.
double yarn_factor(double factor, double mscale = 1);

}  // namespace attn::io
