// A layer's parameters from a file of a model, and back to the names of a family.
#pragma once

#include <vector>

#include "core/layer/result.hpp"
#include "core/layer/weights.hpp"
#include "io/model/family.hpp"

namespace attn::io {

/// Reads a layer's projections in the layout that they are stored in. `heads` is needed for
/// Packing::by_head only. Numbers are rounded to T; those that overflow it are refused. Errors:
/// kind input, naming the tensor, for shapes that do not fit each other.
template <class T>
LayerWeights<T> read_layer_weights(const ArrayFile& file, const ModelLayer& layer,
                                   std::size_t heads);

/// The shapes of the tensors that read_layer_weights reads, by their names.
std::vector<std::pair<std::string, std::vector<std::size_t>>> weight_shapes(
    const ArrayFile& file, const ModelLayer& layer);

/// The parameters under a family's published names, weights in its layout: what read_layer_weights
/// reads back to the same bits. Errors: SettingError of kind usage with key "family", where the
/// family has no such layer.
template <class T>
std::vector<NamedArray> name_layer_weights(const LayerWeights<T>& weights, Family family,
                                           std::size_t number, std::size_t heads);

}  // namespace attn::io
