// The npy header of an array: magic, version, and a Python dictionary as text (NEP 1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/function_ref.hpp"
#include "io/read/array_file.hpp"

namespace attn::io {

inline constexpr std::string_view npy_magic = "\x93NUMPY";

/// Reads a header through `read(offset, count)`, which returns bytes of the file; fills in the
/// array's shape, type and order, and returns the header's length. `size` is that of the whole
/// file: the elements must fill the rest. Errors: kind input at `place`.
std::uint64_t read_npy_header(
    FunctionRef<std::string(std::uint64_t offset, std::size_t count)> read, std::uint64_t size,
    const std::string& place, StoredArray& array);

/// A header of version 1.0 for little-endian numbers, a multiple of 64 bytes long.
std::string npy_header(std::string_view descr, const std::vector<std::size_t>& shape);

}  // namespace attn::io
