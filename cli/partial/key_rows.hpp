// Keys and values of a part, of which only the rows of its range are in memory.
#pragma once

#include <string>

#include "cli/question/rows_in_file.hpp"
#include "core/base/dtype.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/operands.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/operand_shapes.hpp"

namespace attn::cli {

/// A digest of all operands, given parameters included, which tells parts of different questions
/// apart. Those in `rows` are read from their files piece by piece, in `dtype`.
std::string digest_of(const Operands& operands, const OperandRows& rows, Dtype dtype);

/// The shapes of the operands once those in `rows` have the keys of `range` alone.
OperandShapes shapes_of_range(OperandShapes shapes, const OperandRows& rows, const KeyRange& range);

/// Reads those keys. Errors: those of io::read_array.
void read_range(Operands& operands, const OperandRows& rows, const KeyRange& range, Dtype dtype,
                ThreadPool& pool);

}  // namespace attn::cli
