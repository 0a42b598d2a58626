// Flags in a file: a JSON object, named by --config or the environment variable ATTN_CONFIG.
#pragma once

#include <string>
#include <vector>

#include "cli/args/args.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

/// The flags of a file.
struct FlagsOfFile {
    std::vector<FlagValue> flags = {};
    bool is_question = false;  ///< a result that has what it was computed on
};

/// The flags of a file for the command of `args`, in the order of the file. Keys are those of a
/// request and of the command; paths of operands are relative to the file's folder. The file may
/// also be the config of a result, or the result itself. Keys of other commands are ignored if the
/// environment names the file, since that file is for all commands. Errors: kind io, input; kind
/// usage at the key, for keys that no command has, or not this one, for the config of another mode,
/// and for invalid values.
FlagsOfFile read_flag_file(const std::string& path, Origin origin, const Args& args);

/// The keys of a request as flags of the command of `args`, which is not a mode; paths are relative
/// to the file's folder. The text of an array in place of a file's name is the array's. The request
/// may have `meta`, which is not a flag. Errors: the same, and kind usage for flags that are not
/// keys of requests.
std::vector<FlagValue> flags_of_request(const io::InputFile& file, const Args& args);

}  // namespace attn::cli
