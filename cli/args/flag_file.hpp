// Flags in a file: a JSON object, named by --config or the environment variable ATTN_CONFIG.
#pragma once

#include <string>
#include <vector>

#include "cli/args/args.hpp"

namespace attn::cli {

/// The flags of a file for a command, in the order of the file. Keys are those of a request and of
/// the command; paths of operands are relative to the file's folder. Keys of other commands are
/// ignored if the environment names the file, since that file is for all commands. Errors: kind io,
/// input; kind usage at the key, for keys that no command has, or not this one, and for invalid
/// values.
std::vector<FlagValue> read_flag_file(const std::string& path, Origin origin,
                                      const Program& program, const CommandRow& command);

}  // namespace attn::cli
