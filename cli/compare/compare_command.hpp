// `attn compare` on the command line.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow compare_command;

}  // namespace attn::cli
