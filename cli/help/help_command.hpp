// `attn help` and `attn completion`: what the program says of itself.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow help_command;
extern const CommandRow completion_command;

}  // namespace attn::cli
