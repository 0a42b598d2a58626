// The bytes of a result's arrays in the binary formats, little-endian and row-major, and files of
// arrays: npz and safetensors. Those of many results have no metadata.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/function_ref.hpp"
#include "core/base/named_array.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/output.hpp"
#include "io/read/element_type.hpp"
#include "io/write/stored_type.hpp"

namespace attn::io {

static_assert(std::endian::native == std::endian::little,
              "numbers are written in their memory layout");

struct ArrayBytes {
    ElementType element = ElementType::float32;
    std::vector<std::size_t> shape;

    std::uint64_t size() const;  ///< of all elements, in bytes
};

/// Real numbers may be stored as float16 or bfloat16 instead of their own type.
ArrayBytes describe(const NamedArray& array, const std::optional<StoredArrays>& stored);

/// Passes the array's bytes on, piece by piece. A stream is consumed; with several workers its next
/// rows are computed while another thread takes the previous ones. Streams are not stored in
/// another type.
void write_bytes(const NamedArray& array, const std::optional<StoredArrays>& stored,
                 const ThreadPool* workers, FunctionRef<void(std::string_view)> take);

struct ArchiveEntry {
    std::string name;          ///< in the file
    ArrayBytes type;           ///< of `bytes`
    std::string_view bytes;    ///< of all elements, row-major
    std::uint64_t offset = 0;  ///< of the first element in the file; set by the writers
    /// Passes the bytes on, piece by piece, in place of `bytes`.
    std::function<void(FunctionRef<void(std::string_view)>)> write = {};

    void write_to(FunctionRef<void(std::string_view)> take) const {
        write ? write(take) : take(bytes);
    }
};

struct Report;

/// The report's arrays, which must live as long.
std::vector<ArchiveEntry> entries_of(const Report& report);

/// Writes entries with different names. Errors: kind input, for safetensors, if the header is too
/// long.
void write_npz_archive(Output& out, std::span<ArchiveEntry> entries);
void write_safetensors_archive(Output& out, std::span<ArchiveEntry> entries);

}  // namespace attn::io
