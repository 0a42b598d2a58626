// The command line as text, for comments in files.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "cli/args/args.hpp"

namespace attn::cli {

/// " WORD" for each word, quoted for the shell where that is needed.
std::string words_text(std::span<const std::string> words);

/// " --flag VALUE" for each flag but those of these keys.
std::string flags_text(std::span<const FlagValue> flags,
                       std::initializer_list<std::string_view> left_out);

/// A line of shell that asks for the same: "attn self tokens.csv --d-out 2". It has the flags of
/// files and the environment too, and lacks --threads, which changes no byte of a result.
std::string command_text(const Args& args);

}  // namespace attn::cli
