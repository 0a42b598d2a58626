// `attn plot` on the command line.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow plot_command;

}  // namespace attn::cli
