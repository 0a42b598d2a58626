// All that may stand on the command line of attn.
#pragma once

#include "cli/args/args.hpp"

namespace attn::cli {

/// The modes and commands, in the order of help, and the table of options.
const Program& attn_program();

}  // namespace attn::cli
