// What the head of a model's result says about each layer.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/model/model.hpp"

namespace attn::cli {

/// A JSON object with a member for each of `layers`, named by its number: the config, shapes and
/// layout of its attention, as in a result of `multihead`. With an encoder and a decoder these are
/// in members "encoder", "decoder" and "cross". A layer without a softmax has only the axes of its
/// arrays.
std::string layers_json(const ModelResult& result, const std::vector<std::size_t>& layers);

}  // namespace attn::cli
