// The completion of a command line in a shell, from the tables of commands and options.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/args/args.hpp"

namespace attn::cli {

/// What may replace the last word of a line. A `list` has names that may be followed by a comma;
/// `files` are completed by the shell.
struct Completion {
    std::string_view kind;                                     ///< words, list or files
    std::vector<std::pair<std::string, std::string>> words{};  ///< each with its help, or ""
};

/// `line` begins with the program's name and ends at the cursor; a blank at its end begins a word.
Completion completion_of(const Program& program, std::string_view line);

}  // namespace attn::cli
