// Operands whose rows stay in their files, so that each of several processes reads some of them.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/base/thread_pool.hpp"
#include "io/read/array_file.hpp"

namespace attn::cli {

struct RowsInFile {
    io::StoredArray array;
    io::ArrayRules rules;  ///< for its numbers
};

struct OperandRows {
    /// What stays in its file: every required operand, whose file must allow it, or keys, values
    /// and the tokens they are projected from, where their files allow it.
    enum class Of { required, keys };

    Of of = Of::required;
    std::map<std::string, RowsInFile, std::less<>> files = {};  ///< by the operand's key
};

/// Reads `count` rows of a matrix of the array to `to`; returns the end. Errors: those of
/// io::read_array.
template <class T>
T* read_rows(const RowsInFile& file, std::size_t matrix, std::size_t first, std::size_t count,
             T* to, ThreadPool& pool);

}  // namespace attn::cli
