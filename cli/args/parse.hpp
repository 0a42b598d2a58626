// argv to what is asked for.
#pragma once

#include <string>

#include "cli/args/args.hpp"

namespace attn::cli {

/// Reads argv by the tables of `program`, which the answer points into. Errors: kind usage, for
/// what is wrong before a command is known; the rest waits for the command.
Args parse(int argc, const char* const* argv, const Program& program);

/// The page of `attn COMMAND --help`.
std::string help_page(const Program& program, const CommandRow& command);

}  // namespace attn::cli
