#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow scan_command;

}  // namespace attn::cli
