// The file with the numbers of a program that would be too long with them.
#pragma once

#include <string>

#include "cli/repro/program.hpp"
#include "io/file/output.hpp"

namespace attn::cli {

/// Operands and expected arrays by their names, for programs in Python; real numbers in the
/// question's dtype.
void write_npz_data(io::Output& out, const Repro& program);

/// The same arrays one after the other, as C declares them: little-endian numbers in row-major
/// order, booleans as bytes.
void write_raw_data(io::Output& out, const Repro& program);

}  // namespace attn::cli
