// `attn explain` on the command line.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow explain_command;

}  // namespace attn::cli
