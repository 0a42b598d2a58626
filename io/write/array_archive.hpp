// Files of arrays of many results, without metadata: npz and safetensors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io/file/output.hpp"
#include "io/write/array_bytes.hpp"

namespace attn::io {

struct ArchiveEntry {
    std::string name;          ///< in the file
    ArrayBytes type;           ///< of `bytes`
    std::string_view bytes;    ///< of all elements, row-major
    std::uint64_t offset = 0;  ///< of the first element in the file; set by the writers
};

/// Writes entries with different names. Errors: kind input, for safetensors, if the header is too
/// long.
void write_npz_archive(Output& out, std::span<ArchiveEntry> entries);
void write_safetensors_archive(Output& out, std::span<ArchiveEntry> entries);

}  // namespace attn::io
