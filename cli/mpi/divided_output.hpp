// The result file of a divided question, of which each rank writes its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "cli/mpi/communicator.hpp"
#include "cli/question/question.hpp"
#include "core/operator/arrays.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// The header of the file, and where each array's elements begin.
struct FileLayout {
    std::string header;
    std::map<std::size_t, std::uint64_t> offsets;  ///< by ArrayId::index
};

/// The layout of the answer in the request's format, npy or safetensors. All ranks have the same.
FileLayout layout_of(const Question& question, const Plan& plan, ThreadPool& workers);

/// Some rows of an array of (batch, heads, rows, columns): elements of one type, and the place of
/// the first.
struct WrittenRows {
    ArrayId array;
    std::string_view bytes;                     ///< row-major, (batch, heads, rows, columns)
    std::size_t batch, heads, rows, row_bytes;  ///< of `bytes`
    std::size_t first_batch, first_head, first_row;
    std::size_t all_heads, all_rows;  ///< of the array
};

/// Writes the file by all ranks, each calling `write_rows(write)`, where `write` takes WrittenRows.
/// The file has its name only if all ranks have written; otherwise there is none. Errors: kind io,
/// on one rank; FailedElsewhere on the others.
void write_divided(const std::string& path, const FileLayout& layout, const Communicator& world,
                   FunctionRef<void(FunctionRef<void(const WrittenRows&)> write)> write_rows);

}  // namespace attn::cli
