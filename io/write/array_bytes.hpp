// The bytes of a result's arrays in the binary formats: little-endian and row-major.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/function_ref.hpp"
#include "core/base/named_array.hpp"
#include "core/base/thread_pool.hpp"
#include "io/write/stored_type.hpp"

namespace attn::io {

static_assert(std::endian::native == std::endian::little,
              "numbers are written in their memory layout");

struct ArrayBytes {
    /// The names of the element's type: "float32", NumPy's, which is empty for bfloat16, and that
    /// of safetensors.
    std::string_view dtype, descr, safetensors;
    std::size_t element = 0;  ///< bytes of one
    std::vector<std::size_t> shape;

    std::uint64_t size() const;  ///< of all elements
};

/// Real numbers may be stored as float16 or bfloat16 instead of their own type.
ArrayBytes describe(const NamedArray& array, const std::optional<StoredArrays>& stored);

/// The description of an array of this dtype and shape; empty if the dtype is unknown.
std::optional<ArrayBytes> described_as(std::string_view dtype, std::vector<std::size_t> shape);

/// Passes the array's bytes on, piece by piece. A stream is consumed; with several workers its next
/// rows are computed while another thread takes the previous ones. Streams are not stored in
/// another type.
void write_bytes(const NamedArray& array, const std::optional<StoredArrays>& stored,
                 const ThreadPool* workers, FunctionRef<void(std::string_view)> take);

}  // namespace attn::io
