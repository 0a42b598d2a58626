#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

extern const CommandRow model_command;

}  // namespace attn::cli
