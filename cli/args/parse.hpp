// argv to what is asked for.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

/// Reads argv, and the files of flags that it and the environment name, by the tables of `program`,
/// which the answer points into. Errors: kind usage, for what is wrong before a command is known;
/// the rest waits for the command; of the files' those of read_flag_file.
Args parse(int argc, const char* const* argv, const Program& program);

}  // namespace attn::cli
