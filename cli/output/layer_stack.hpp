// The arrays of a model's layers as pictures draw them: one array with an axis "layer".
#pragma once

#include <cstddef>
#include <vector>

#include "io/write/report.hpp"

namespace attn::cli {

/// Replaces arrays of one name and several layers by one array with the axis "layer" before the
/// others. `layers` are those of the result; a name that begins with its stack's, as
/// "encoder_queries", has only those up to its deepest. Elements that a layer does not have are
/// NaN: layers may lack an array, or differ in heads and widths. The label of a layer states that
/// it has none, or how many heads it has.
/// Errors: OutOfMemory.
void stack_layers(io::Report& report, const std::vector<std::size_t>& layers);

}  // namespace attn::cli
