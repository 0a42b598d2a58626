// Resizes tables of positions to another grid.
#pragma once

#include <cstddef>
#include <vector>

namespace attn {

/// Like torch.nn.functional.interpolate with align_corners=False; `smooth`: with antialias=True.
enum class Resize { none, bilinear, bilinear_smooth, bicubic, bicubic_smooth };

/// `table` and the result are (rows, columns, width) in row-major order.
std::vector<double> resized(const std::vector<double>& table, std::size_t rows, std::size_t columns,
                            std::size_t new_rows, std::size_t new_columns, Resize kind);

}  // namespace attn
