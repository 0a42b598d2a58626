// Finds the attention layers of a model by the names in a file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/model/families.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

struct NameMatch {
    std::string prefix;
    std::optional<std::size_t> number;
};

/// Whether `name` ends with `pattern` at the start of a component, and the value of '#'.
std::optional<NameMatch> match_name(std::string_view name, std::string_view pattern);

/// One attention layer found by the names in a file.
struct ModelLayer {
    const Family* family = nullptr;
    const LayerNames* names = nullptr;  ///< its form in the family
    std::string prefix;                 ///< before the names' `layer`
    std::optional<std::size_t> number;  ///< empty if the names have none
    std::size_t heads = 0;              ///< of a wrapper
    bool in_out = false;                ///< weights are (d_in, d_out), else (d_out, d_in)

    /// The full name of a tensor of the layer; of head `head` of a wrapper.
    std::string full(std::string_view name, std::size_t head = 0) const;
    /// The full name of a tensor of the output projection; a wrapper has one for all heads.
    std::string full_out(std::string_view name) const;
    /// The same for names outside the layer, with '#' as its number.
    std::string beside(std::string_view name) const;
    /// The module that all tensors of the layer are in.
    std::string module() const { return names->is_wrapper ? prefix : full(""); }
    /// 1, or the number of the wrapper's heads.
    std::size_t groups() const { return heads == 0 ? 1 : heads; }
};

/// All layers that the names show, readable or not.
std::vector<ModelLayer> layers_of(const ArrayFile& file);

struct LayerQuery {
    const Family* family = nullptr;     ///< null: any
    std::optional<std::size_t> number;  ///< empty: layer 0, or the only one
    std::string prefix;                 ///< empty: any
    std::optional<bool> in_out;         ///< for names that do not determine it
};

/// Errors: kind input at the file's name, listing the layers, if none or several match; if a
/// required tensor is missing.
ModelLayer find_layer(const ArrayFile& file, const LayerQuery& query);

}  // namespace attn::io
