// `attn help` and `attn completion`: the program's documentation.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow help_command;
extern const CommandRow completion_command;

}  // namespace attn::cli
