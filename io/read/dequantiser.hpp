// Elements of an array that are computed from what a file stores: blocks of few bits, numbers with
// separate scales, rows in another order.
#pragma once

#include <cstddef>

namespace attn::io {

class Dequantiser {
public:
    virtual ~Dequantiser() = default;

    /// Elements [first, first + count), all of them in the array, in row-major order. Several
    /// threads may call it at once. Errors: those of reading the file.
    virtual void read(std::size_t first, std::size_t count, float* to) const = 0;
};

}  // namespace attn::io
