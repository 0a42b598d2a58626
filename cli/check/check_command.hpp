// `attn check` on the command line.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow check_command;

}  // namespace attn::cli
