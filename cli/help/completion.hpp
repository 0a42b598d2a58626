// The completions of a shell: the words and flags of every command, from the tables.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/args/args.hpp"

namespace attn::cli {

/// The kinds of values of a flag.
enum class ValueKind { none, word, arrays, file, other };

struct CompletedFlag {
    std::vector<std::string> spellings;  ///< with their dashes: "--output", "-o"
    ValueKind kind;
    std::string values;    ///< of a word: all of them, between blanks
    std::string argument;  ///< the placeholder of help
    std::string help;      ///< without its default
};

/// All flags that a command takes, its own first.
std::vector<CompletedFlag> completed_flags(const Program& program, const CommandRow& command);

/// The values of the command's first word, between blanks; empty if it is a file.
std::string completed_words(const Program& program, const CommandRow& command);

/// The arrays that --emit and the like take, between blanks.
std::string completed_arrays();

using Completion = std::string (*)(const Program&);
std::string bash_completion(const Program& program);
std::string fish_completion(const Program& program);
std::string zsh_completion(const Program& program);

inline constexpr std::pair<std::string_view, Completion> shells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

}  // namespace attn::cli
