#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow merge_command;

}  // namespace attn::cli
