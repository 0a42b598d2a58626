// Parses argv.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

/// Reads argv, and the files of flags that it and the environment name, by the tables of `program`,
/// to which the result points. Errors: kind usage, for errors before a command is known; others are
/// deferred to the command; those of read_flag_file.
Args parse(int argc, const char* const* argv, const Program& program);

}  // namespace attn::cli
