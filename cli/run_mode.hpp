// A mode's command: one question, its answer and its files.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

int run_mode(const Args& args);

}  // namespace attn::cli
