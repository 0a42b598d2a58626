// Tensors beside a layer's parameters: those that change nothing, and those that may.
#pragma once

#include <string>
#include <vector>

#include "io/model/find_layer.hpp"

namespace attn::io {

/// The numbers of a vector. Errors: as read_array.
std::vector<double> read_vector(const StoredArray& array);

/// A tensor of the layer that is not understood may change what it computes. Errors: kind input at
/// the file's name.
void check_others(const ArrayFile& file, const ModelLayer& layer);

/// A mask that the layer keeps beside its parameters may be passed over only if it is the causal
/// one. Errors: kind input, naming the tensor.
void check_causal_masks(const ArrayFile& file, const ModelLayer& layer);

/// Frequencies of the rotary embedding that older files hold must be those that are computed,
/// within the rounding of the type that they are stored in. Other ones are meant where
/// `may_differ`, another number of them where `may_differ_in_number`. Errors: kind input.
void check_frequencies(const ArrayFile& file, const ModelLayer& layer,
                       const std::vector<double>& computed, bool may_differ,
                       bool may_differ_in_number);

/// Errors: kind input with the whole name of a tensor below `module` that is none of `known`, full
/// names: it may change what the `part` computes.
void check_nothing_else(const ArrayFile& file, const std::string& module,
                        const std::vector<std::string>& known, const std::string& part);

}  // namespace attn::io
