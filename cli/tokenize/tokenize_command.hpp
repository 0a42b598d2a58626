// `attn tokenize` on the command line.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow tokenize_command;

}  // namespace attn::cli
