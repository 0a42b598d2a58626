// An array of another program, in attn's layout.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "core/check/precision.hpp"
#include "core/operator/arrays.hpp"

namespace attn {

struct TheirArray {
    ArrayId id;
    std::string name;  ///< what the other program calls it
    /// (batch, heads, rows, columns), with all axes that attn computes with; 1 for those that the
    /// array does not have.
    std::array<std::size_t, 4> shape;
    std::vector<double> values;  ///< row-major
    Precision type;              ///< that the program computed in
};

}  // namespace attn
