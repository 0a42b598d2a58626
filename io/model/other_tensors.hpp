// Tensors besides a layer's parameters: those that have no effect, and those that may.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/model/find_layer.hpp"

namespace attn::io {

/// The elements of a vector. Errors: as read_array.
std::vector<double> read_vector(const StoredArray& array);

/// The weight and bias of a norm. Files converted from TensorFlow call them gamma and beta, the
/// notebooks' book scale and shift.
std::pair<std::string, std::string> names_of_norm(const ArrayFile& file, const std::string& name);

/// The modules of the layer's norms of queries and keys, by their full names; empty unless it has
/// both.
struct HeadNormNames {
    std::string query, key;
    explicit operator bool() const { return !query.empty(); }
};
HeadNormNames head_norm_names(const ArrayFile& file, const ModelLayer& layer);

/// Whether the layer has a key and a value that all queries see, (1, 1, width) each.
bool has_more_keys(const ArrayFile& file, const ModelLayer& layer);

/// Refuses an unknown tensor of the layer, which may change the computation. Errors: kind input at
/// the file's name.
void check_others(const ArrayFile& file, const ModelLayer& layer);

/// A mask among the layer's tensors may be ignored only if it is the causal one. Errors: kind
/// input, naming the tensor.
void check_causal_masks(const ArrayFile& file, const ModelLayer& layer);

/// Rotary frequencies in older files must equal the computed ones, within the rounding of their
/// type. Different values are allowed with `may_differ`, a different number of them with
/// `may_differ_in_number`. Errors: kind input.
void check_frequencies(const ArrayFile& file, const ModelLayer& layer,
                       const std::vector<double>& computed, bool may_differ,
                       bool may_differ_in_number);

/// Errors: kind input with the full name of a tensor in `module` that is not in `known` (full
/// names): it may change the computation of `part`.
void check_nothing_else(const ArrayFile& file, const std::string& module,
                        const std::vector<std::string>& known, const std::string& part);

}  // namespace attn::io
