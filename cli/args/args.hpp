// The parsed command line, and the rows of commands.
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

/// The help of an option of the table that has a different or additional meaning in a command.
struct HelpOverride {
    std::string_view key;
    const char* help;
};

/// For the options of reading files, in commands that only read files.
inline constexpr HelpOverride csv_help[] = {
    {"csv_header", "whether CSV starts with a header line (default auto)"},
    {"csv_labels", "whether the first CSV column holds labels (default auto)"},
    {"csv_decimal", "the decimal mark of numbers in CSV (default .)"},
    {"csv_quotes", "whether \" quotes fields of CSV (default yes)"},
    {"csv_comments", "lines of CSV that begin with # are comments"}};

/// One command.
struct CommandRow {
    std::string_view name;
    const char* summary;
    const char* note = "";        ///< after the summary, in the command's help
    const char* examples = "";    ///< lines of help
    const char* input = nullptr;  ///< help of INPUT, if that is the only word
    const char* usage = "";       ///< otherwise the words; then, separately, their description
    const char* ending = "";      ///< the last paragraph of help
    std::span<const HelpOverride> common_flags = {};  ///< of its short help; empty: its own
    const ModeRow* mode = nullptr;                    ///< of a command that answers one question
    unsigned takes = 0;  ///< takes options of the table with these uses, and of the mode
    std::span<const HelpOverride> shown_flags = {};  ///< of those, in its help; a mode shows all
    std::span<const Option> own = {};
    /// Keys of its requests besides the flags, for a command that takes requests and is not a mode.
    std::span<const Option> keys = {};
    bool explains_flags = false;  ///< its words may be flags of all commands

    /// The values of its first word if it is not a file: for completion.
    std::vector<std::string_view> (*names)(const Program&) = nullptr;

    /// Runs the command and returns the exit code.
    int (*run)(const Args&) = nullptr;
};

/// Rows that are defined in their modules.
extern const CommandRow batch_command, inspect_command, merge_command, partial_command,
    scan_command;

bool takes(const CommandRow& command, const Option& option);

/// A heading of the list of commands.
struct CommandGroup {
    const CommandRow* first;  ///< the command under it
    const char* title;
};

/// The grammar of the command line.
struct Program {
    const char* summary;
    const char* examples;
    std::string (*version)();
    std::span<const CommandRow* const> commands;
    std::span<const CommandGroup> groups;  ///< of the commands, in their order
    std::span<const Option> options;
};

/// The origin of a flag. Later ones override earlier ones; the request overrides all except the
/// command line.
enum class Origin { environment, config, command_line };

/// The id in a config. It is not a flag: only a file of flags has it.
extern const Option config_id;

struct FlagValue {
    const Option* option;
    std::string text;  ///< "true" or "false" for a boolean; empty for a switch
    Origin origin = Origin::command_line;
    std::string location{};  ///< in a file of flags
};

struct Args {
    const Program* program = nullptr;
    const CommandRow* command = nullptr;
    std::optional<std::string> input;  ///< the word of a command that takes INPUT alone
    std::vector<std::string> words;    ///< other words that are not flags of the command, in order
    std::vector<FlagValue> flags;      ///< the last of each, in the order of the tables
    std::vector<std::string> flag_files;  ///< that gave some of them
    std::string question;  ///< the result of --config that has what it was computed on; or empty
    std::string message;   ///< to print instead: help or version
    int exit_code = 0;     ///< with a message

    /// Whether the flag of this key is given, the command's own or not.
    bool gives(std::string_view key) const;

    /// The flag or the key of the command's own, or null.
    const FlagValue* find(std::string_view own) const;

    /// For the command's own flags, by key: whether it is given; its text; a number within its
    /// limits. Errors: kind usage if it is not such a number.
    bool has(std::string_view own) const;
    std::optional<std::string> text(std::string_view own) const;
    std::optional<std::uint64_t> whole(std::string_view own) const;
    std::optional<double> real(std::string_view own) const;

    /// Its index among the names of a choice. Errors: kind usage for an unknown name.
    std::optional<std::size_t> place(std::string_view own) const;

    /// Always throws, kind usage.
    [[noreturn]] void fail(std::string_view own) const;

    /// The words, if none is an unknown flag. Errors: kind usage for the first that is.
    const std::vector<std::string>& names() const;

    /// How the words around `--mode MODE` are spelled.
    std::string mode_as_word(const std::string& flag) const;

    /// Reports a word that looks like a flag. Always throws, kind usage.
    [[noreturn]] void fail_unknown(const std::string& word) const;
};

/// The name of a flag in errors: "--heads 5", "--no-causal", "flags.json:1:9: heads 5".
std::string location_of(const FlagValue& flag);

}  // namespace attn::cli
