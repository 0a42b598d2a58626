// Files of arrays: npz and safetensors. Those of many results have no metadata.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/output.hpp"
#include "io/write/array_bytes.hpp"

namespace attn::io {

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
