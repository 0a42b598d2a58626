// The command line as text, for comments in files.
#pragma once

#include <string>

#include "cli/args/args.hpp"

namespace attn::cli {

/// A line of shell that asks for the same: "attn self tokens.csv --d-out 2". It has the flags of
/// files and the environment too, and lacks --threads, which changes no byte of a result.
std::string command_text(const Args& args);

}  // namespace attn::cli
