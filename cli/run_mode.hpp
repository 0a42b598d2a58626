// The command of a mode: reads one question, computes its answer and writes its files.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

int run_mode(const Args& args);

}  // namespace attn::cli
