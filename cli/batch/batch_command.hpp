// `attn batch` on the command line.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow batch_command;

}  // namespace attn::cli
