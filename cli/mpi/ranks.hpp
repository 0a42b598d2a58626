// A command line on the processes ("ranks") that mpirun, or another launcher of MPI, has started.
// In a build without MPI, without_mpi.cpp is compiled instead of this module's other files.
#pragma once

#include <optional>
#include <string>

#include "cli/args/args.hpp"
#include "core/base/function_ref.hpp"

namespace attn::cli {

/// Parses and runs the command line together with the other ranks, and returns the exit code. A
/// mode is divided, and a batch has its shard; `run` runs whatever is not divided. Of ranks that
/// fail, one reports its error. Empty if no launcher of MPI has started this process.
std::optional<int> run_on_ranks(FunctionRef<Args()> parse, FunctionRef<int(const Args&)> run);

/// The library of MPI and its version, or what --version shows in a build without it.
std::string mpi_library();

}  // namespace attn::cli
