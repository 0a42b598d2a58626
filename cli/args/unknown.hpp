// Messages for unknown words: the equivalent of another program's word, else the nearest known
// word, else the place where the known ones are listed. Never a distant guess.
#pragma once

#include <string>
#include <vector>

#include "cli/args/args.hpp"

namespace attn::cli {

/// "not a flag of attn self; attn multihead, cross and sdpa have it", "unknown flag; the nearest
/// known one is --seed". `flag` has its dashes.
std::string unknown_flag(const Program& program, const CommandRow& command,
                         const std::string& flag);

std::string unknown_command(const Program& program, const std::string& word);

/// "; did you mean multihead?" for another program's name of a mode, or a typo; or empty.
std::string mode_meant(const std::string& word);

/// For a request's key, in a mode that has these.
std::string unknown_key(const std::string& key, const std::vector<std::string>& known);

/// The alternative to this option, for a mode that lacks it: "attn multihead has it".
std::string where_else(const Option& option, Mode mode);

/// The commands that take the option, "attn self, causal and model"; empty: none.
std::string owners_of(const Program& program, const Option& option);

/// The commands that take an option that this one does not, "attn plot has it"; or empty.
std::string elsewhere(const Program& program, const CommandRow& command, const Option& option);

/// The names of a table of modes, "multihead, cross and sdpa".
std::string text_of(Modes modes);

}  // namespace attn::cli
