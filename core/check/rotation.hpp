// Rotary embedding of rows.
#pragma once

#include "core/check/head_tensors.hpp"

namespace attn::check_detail {

/// Rotates a row by its position, the one of this index among the rotation's. `error` may be null.
void rotate_row(const ErrorModel& model, const Rotation& rotation, Rope pairs, std::size_t position,
                double* value, double* error);

}  // namespace attn::check_detail
