// The grammar of attn's command line: its commands and options.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

/// The modes and commands, in the order of help, and the table of options.
const Program& attn_program();

}  // namespace attn::cli
