// `attn repro` on the command line.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow repro_command;

}  // namespace attn::cli
