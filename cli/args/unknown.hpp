// What to say of a word that is not known: what is meant by it where it comes from another program,
// else the nearest that is known, else where the known ones are listed. Never a guess that is far.
#pragma once

#include <string>
#include <vector>

#include "cli/args/args.hpp"

namespace attn::cli {

/// "no flag of attn self; attn multihead, cross and sdpa have it", "unknown flag; the nearest known
/// one is --seed". `flag` has its dashes.
std::string unknown_flag(const Program& program, const CommandRow& command,
                         const std::string& flag);

std::string unknown_command(const Program& program, const std::string& word);

/// Of a request's key, in a mode that knows these.
std::string unknown_key(const std::string& key, const std::vector<std::string>& known);

/// Where to have what this option does, for a mode that lacks it: "attn multihead has it".
std::string where_else(const Option& option, Mode mode);

/// The names of a table of modes, "multihead, cross and sdpa".
std::string text_of(Modes modes);

}  // namespace attn::cli
