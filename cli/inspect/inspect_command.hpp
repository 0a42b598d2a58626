// `attn inspect` on the command line.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow inspect_command;

}  // namespace attn::cli
