// attn.1, from the tables of commands and options and from pages of the manual.
#pragma once

#include <string>

#include "cli/args/args.hpp"

namespace attn::cli {

/// In roff, for man's macros. It holds no date: the same program prints the same bytes.
std::string man_page(const Program& program);

}  // namespace attn::cli
