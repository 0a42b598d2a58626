// A layer's parameters from a file of a model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/layer/weights.hpp"
#include "io/model/find_layer.hpp"

namespace attn::io {

/// Reads a layer's projections in their stored layout. `heads` is required only for
/// Packing::by_group. Numbers are rounded to T; those that overflow it are refused. Errors: kind
/// input, naming the tensor, for inconsistent shapes.
template <class T>
LayerWeights<T> read_layer_weights(const ArrayFile& file, const ModelLayer& layer,
                                   std::size_t heads);

/// The width of the layer's input, of its context, and of all its queries (of one head in a
/// wrapper), from the shapes alone. 0 if they are not those of matrices.
struct LayerWidths {
    std::size_t d_in = 0, context = 0, queries = 0;
};
LayerWidths layer_widths(const ArrayFile& file, const ModelLayer& layer);

/// The shapes of the tensors that read_layer_weights reads, by their names.
std::vector<std::pair<std::string, std::vector<std::size_t>>> weight_shapes(
    const ArrayFile& file, const ModelLayer& layer);

}  // namespace attn::io
