// A layer's parameters from a file of a model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/layer/weights.hpp"
#include "io/model/find_layer.hpp"

namespace attn::io {

/// Reads a layer's projections in the layout that they are stored in. `heads` is needed for
/// Packing::by_head only. Numbers are rounded to T; those that overflow it are refused. Errors:
/// kind input, naming the tensor, for shapes that do not fit each other.
template <class T>
LayerWeights<T> read_layer_weights(const ArrayFile& file, const ModelLayer& layer,
                                   std::size_t heads);

/// Numbers that the layer takes of each token, of each token of the context, and of all its queries
/// side by side (of a wrapper: of one head's), as the shapes say without reading a tensor. 0 where
/// they are no matrices'.
struct LayerWidths {
    std::size_t d_in = 0, context = 0, queries = 0;
};
LayerWidths layer_widths(const ArrayFile& file, const ModelLayer& layer);

/// The shapes of the tensors that read_layer_weights reads, by their names.
std::vector<std::pair<std::string, std::vector<std::size_t>>> weight_shapes(
    const ArrayFile& file, const ModelLayer& layer);

}  // namespace attn::io
