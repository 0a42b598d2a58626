// A mode whose question is divided among the ranks: run_mode() with rows of operands and results.
#pragma once

#include "cli/args/args.hpp"
#include "cli/mpi/communicator.hpp"

namespace attn::cli {

/// Each rank reads some rows of the operands, computes its share of the answer (division.hpp) and
/// writes its rows of the one output file. Errors: those of run_mode, and kind usage for a
/// question that cannot be divided. One rank throws the error and the others FailedElsewhere; no
/// output file is left.
void run_divided(const Args& args, const Communicator& world);

}  // namespace attn::cli
