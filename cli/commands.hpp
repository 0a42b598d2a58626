// The grammar of attn's command line: its commands and options.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

/// The modes and commands, in the order of help, and the table of options.
const Program& attn_program();

/// The command of a mode: reads one question, computes its answer and writes its files.
int run_mode(const Args& args);

}  // namespace attn::cli
