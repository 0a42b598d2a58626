// Pages of help, from the tables of commands and options.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/args.hpp"

namespace attn::cli {

/// The flags of every command; and the one that takes a command's place.
extern const Option config_option, help_option, version_option;

/// An option of a command, and its help there.
struct ShownOption {
    const Option* option;
    std::string help;
    const char* group;  ///< null if the command's help does not show it
};

/// Its own first, then those of the table.
std::vector<ShownOption> taken_options(const Program& program, const CommandRow& command);

/// `attn`, `attn -h` and `attn --help`: the commands.
std::string program_page(const Program& program, std::size_t columns);

/// The commands and their summaries, in groups.
std::string command_list(const Program& program, std::size_t columns);

/// `attn COMMAND -h`: its summary, the common flags and examples; at most 24 lines of 80 columns.
std::string short_page(const Program& program, const CommandRow& command, std::size_t columns);

/// `attn COMMAND --help`: every flag by group, with its default.
std::string full_page(const Program& program, const CommandRow& command, std::size_t columns);

/// A line of a list of commands or pages.
std::string list_entry(std::string_view name, std::string_view summary, std::size_t columns);

/// "-s, --seed N", "--causal, --no-causal".
std::string spelling_of(const Option& option);

}  // namespace attn::cli
