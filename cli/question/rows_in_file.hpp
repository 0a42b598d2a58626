// Operands whose rows stay in their files, so that each of several processes reads some of them.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "io/read/array_file.hpp"

namespace attn::cli {

struct RowsInFile {
    io::StoredArray array;
    io::ArrayRules rules;  ///< for its numbers
};

/// By key: inputs and context, or query, key and value.
using OperandRows = std::map<std::string, RowsInFile, std::less<>>;

}  // namespace attn::cli
