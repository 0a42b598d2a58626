// What the command line says, and the rows of the commands that it may name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/option.hpp"

namespace attn::cli {

struct Args;
struct Program;

/// An option of the table that means something else in a command, or more: its help there.
struct OwnHelp {
    std::string_view key;
    const char* help;
};

/// Of the options that say how a file is read, in commands that look at files.
inline constexpr OwnHelp csv_help[] = {
    {"csv_header", "whether CSV starts with a header line (default auto)"},
    {"csv_labels", "whether the first CSV column holds labels (default auto)"},
    {"csv_comments", "lines of CSV that begin with # are comments"}};

/// One command.
struct CommandRow {
    std::string_view name;
    const char* summary;
    const char* note = "";        ///< behind the summary, in the command's own help
    const char* examples = "";    ///< lines of help
    const char* input = nullptr;  ///< help of INPUT, where that is the one word that is taken
    const char* usage = "";       ///< else the words that are taken; then, apart, what they are
    const char* ending = "";      ///< the last paragraph of help
    std::span<const OwnHelp> daily = {};  ///< flags of its short help; none: its own
    const ModeRow* mode = nullptr;        ///< of a command that answers one question
    unsigned takes = 0;                   ///< options of the table with these uses, and of the mode
    std::span<const OwnHelp> told = {};   ///< of those, the ones that its help shows; a mode's: all
    std::span<const Option> own = {};

    /// What its first word may be, where it is no file: for completion.
    std::vector<std::string_view> (*names)(const Program&) = nullptr;

    /// Runs the command; gives the exit code.
    int (*run)(const Args&) = nullptr;
};

bool takes(const CommandRow& command, const Option& option);

/// All that may stand on the command line.
struct Program {
    const char* summary;
    const char* examples;
    std::string (*version)();
    std::span<const CommandRow* const> commands;
    std::span<const Option> options;
};

/// Who gave a flag. Later ones win over earlier ones, and the request that is read over all but
/// the command line.
enum class Giver { environment, config, command_line };

struct Given {
    const Option* option;
    std::string text;  ///< of a boolean "true" or "false"; of a switch empty
    Giver giver = Giver::command_line;
    std::string place{};  ///< in a file of flags
};

struct Args {
    const Program* program = nullptr;
    const CommandRow* command = nullptr;
    std::optional<std::string> input;  ///< the word of a command that takes INPUT alone
    std::vector<std::string> words;    ///< others that are no flags of the command, in their order
    std::vector<Given> given;          ///< the last of each, by the order of the tables
    std::vector<std::string> flag_files;  ///< that some of them come from
    std::string message;                  ///< to print instead: help or version
    int exit_code = 0;                    ///< beside a message

    /// Whether the flag of this key is given, the command's own or not.
    bool gives(std::string_view key) const;

    /// The flag of the command's own, or null.
    const Given* find(std::string_view own) const;

    /// Of the command's own flags, by key: whether it was given; its text; a number within its
    /// limits. Errors: kind usage, where it is no such number.
    bool has(std::string_view own) const;
    std::optional<std::string> text(std::string_view own) const;
    std::optional<std::uint64_t> whole(std::string_view own) const;
    std::optional<double> real(std::string_view own) const;

    /// Its place among the names of a choice. Errors: kind usage, for no such name.
    std::optional<std::size_t> place(std::string_view own) const;

    /// Errors: kind usage, always.
    [[noreturn]] void fail(std::string_view own) const;

    /// The words where none is an unknown flag. Errors: kind usage, for the first that is.
    const std::vector<std::string>& names() const;

    /// Says what is wrong with a word that looks like a flag. Errors: kind usage, always.
    [[noreturn]] void fail_unknown(const std::string& word) const;
};

/// How errors name a flag: "--heads 5", "--no-causal", "flags.json:1:9: heads 5".
std::string place_of(const Given& given);

}  // namespace attn::cli
