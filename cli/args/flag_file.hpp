// Flags in a file: a JSON object, as --config and the environment's ATTN_CONFIG name it.
#pragma once

#include <string>
#include <vector>

#include "cli/args/args.hpp"

namespace attn::cli {

/// The flags of a file for a command, in the order of the file. Keys are those of a request, with
/// the command's own; a path of an operand starts from the file's folder. What only other commands
/// have is passed over where the environment names the file, since that one is for all commands.
/// Errors: kind io, input; kind usage with the key's place, for keys that no command has, or not
/// this one, and for values that no flag has.
std::vector<Given> read_flag_file(const std::string& path, Giver giver, const Program& program,
                                  const CommandRow& command);

}  // namespace attn::cli
