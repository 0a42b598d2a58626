#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow partial_command;

}  // namespace attn::cli
