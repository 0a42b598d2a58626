// A layer's parameters under the names of a family.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/base/named_array.hpp"
#include "core/layer/weights.hpp"
#include "io/model/families.hpp"

namespace attn::io {

/// The layer and family to write the parameters as, and the setting that specifies it.
struct LayerName {
    const Family& family;
    std::size_t number = 0;
    std::string_view setting = "family";
};

/// The parameters under a family's published names, weights in its layout, which read_layer_weights
/// reads back to the same bits. Errors: SettingError of kind usage with the setting's key if the
/// family has no such layer.
template <class T>
std::vector<NamedArray> name_layer_weights(const LayerWeights<T>& weights, const LayerName& name,
                                           std::size_t heads);

}  // namespace attn::io
