// Options, commands, the parsed command line and pages of help.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/plan/settings.hpp"
#include "io/text/text.hpp"

namespace attn::io {
struct InputFile;
}  // namespace attn::io

namespace attn::cli {

struct Request;

/// The uses of an option, one bit each.
enum Use : unsigned {
    as_key = 1,        ///< is allowed in a request document
    as_flag = 2,       ///< is allowed on the command line of a mode
    in_config = 4,     ///< is part of `config`, subject to the next two:
    of_draws = 8,      ///< not if weights are given
    of_model = 16,     ///< only if weights are given
    as_saved = 32,     ///< is read from attn's metadata of weights
    of_heads = 64,     ///< ... unless other heads are given
    in_batch = 128,    ///< may be a default of a batch, unlike outputs for all records
    in_explain = 256,  ///< has a meaning in explanations, unlike the form of arrays
    in_files = 512,    ///< affects reading files, also for commands that only read files
    in_model = 1024,   ///< has a meaning for all layers of a model
    in_check = 2048,   ///< says which part of the arrays another program's file holds
    in_scan = 4096,    ///< the same, for statistics of all layers
    in_part = 8192,    ///< has a meaning for the file of a part
    everywhere = as_key | as_flag | in_config | in_batch | in_explain
};

/// Limits of a number, or of each number of a list. Errors of integers state the limits themselves.
struct Limits {
    double lowest = 0, highest = std::numeric_limits<double>::infinity();
    const char* expected = "";  ///< of a boolean: a word that its flag may have, with no effect
    std::size_t longest = std::numeric_limits<std::size_t>::max();  ///< of a list
    std::size_t shortest = 1;
};

/// The type of an option's value.
enum class FieldKind {
    word,      ///< a string that a command reads from its flags itself
    no_value,  ///< the same, for a flag without a value
    choice,    ///< one of several names
    /// An array: the path of a file, or a request's member. One that `set` takes may also be
    /// constants: numbers in a flag's list or a request's flat array.
    operand,
    boolean,  ///< --NAME and --no-NAME
    integer,  ///< from 0
    seed,     ///< an integer from -2^63 to 2^64-1
    number,
    string,
    text,  ///< a string; a list of them is that of several requests
    strings,
    token,            ///< an index, or the label of a token
    integers,         ///< a list, from 0
    signed_integers,  ///< a list
    numbers,          ///< a list
    shapes,           ///< an object of shapes, by tensor
    arrays,           ///< an object of arrays or files, by name
    parameters        ///< a list of numbers, or an object of numbers and lists by name
};

/// How an option's value is stored in a request; made by field_of<path...> (cli/request/field.hpp).
struct Field {
    FieldKind kind = FieldKind::word;
    /// Stores a value in the form of a request's key. Returns what is wrong with it, or nothing.
    std::string (*set)(Request&, const nlohmann::json&, const Limits&) = nullptr;
    /// Appends the value as JSON, or nothing if it is not given.
    void (*append)(std::string& json, const Request&) = nullptr;
    std::string_view (*name)(std::size_t index) = nullptr;  ///< of a choice; empty after the last
    bool has_default = false;                               ///< a choice's first name
};

inline constexpr Field no_value{FieldKind::no_value}, operand_field{FieldKind::operand},
    text_field{FieldKind::text};

struct Option {
    const char* key;         ///< in a request; the flag has '-' for '_'
    const char* group = "";  ///< in help
    Modes modes = 0;         ///< where it is allowed
    Field field = {};
    Limits limits = {};
    const char* argument = "";  ///< the placeholder in help; none for a choice or a boolean
    const char* help = "";      ///< ends with the default, except for a choice, where it is added
    unsigned use = everywhere;
    char letter = 0;       ///< the short flag
    bool repeats = false;  ///< given again, it adds a value: FlagValue::text has a zero between two
    /// A command's own flag without a value has that of this one, if it is given.
    const char* value_of = nullptr;
};

/// The error of a list of texts for `key` of a request in `file`, which may have other requests,
/// for `attn batch` with these flags.
std::string about_texts(std::string_view key, const std::string& file, const std::string& flags);

/// " WORD" for each word, quoted for the shell where that is needed.
std::string words_text(std::span<const std::string> words);

/// The option of this key, or null.
const Option* find_option(std::span<const Option> options, std::string_view key);

/// True and false on the command line are --NAME and --no-NAME.
inline bool is_boolean(const Option& option) {
    return option.field.kind == FieldKind::boolean;
}

/// Whether its flag has a value of its own.
inline bool has_value(const Option& option) {
    return option.field.kind != FieldKind::no_value && !is_boolean(option);
}

/// Whether its value is a list, with commas.
bool is_list(const Option& option);

/// Whether its value is, or may be, the name of a file.
inline bool names_file(const Option& option) {
    return std::string_view(option.argument).find("FILE") != std::string_view::npos;
}

/// The flag without its dashes, and with them.
std::string flag_name(const Option& option);
std::string flag_of(const Option& option);

/// "-s, --seed", where it has a short flag.
std::string all_names_of(const Option& option);

/// The text after its leading dashes.
std::string without_dashes(const std::string& word);

/// "--token-ids" for "token_ids".
std::string flag_of_key(std::string_view key);

/// The names of a choice, in the order of help; none of any other field.
std::vector<std::string_view> names_of(const Field& field);

/// Whether `text`, a value of this option, is the name of a file.
bool is_file_name(const Option& option, std::string_view text);

/// "a|b|c" for a choice.
std::string argument_of(const Option& option);
std::string help_of(const Option& option);

/// The expected value in an error of a command's own flag: the text of the limits, or "a, b or c".
std::string expected_of(const Option& option);

using io::listed;

/// Two of them with a mark between: "1/8", "0:4"; or empty.
std::optional<std::pair<std::uint64_t, std::uint64_t>> two_numbers(std::string_view text,
                                                                   char mark);

std::vector<std::string_view> mode_names();

/// The names of all modes, for errors.
std::string listed_modes();

/// One of a table of names, for flags of one command: not part of a request.
template <const auto& names>
constexpr Field choice_among{.kind = FieldKind::choice, .name = [](std::size_t i) {
                                 return i < names.size() ? names[i].second : std::string_view();
                             }};

struct Args;
struct Program;

/// The exit code of a command that finds a difference, or records that fail.
inline constexpr int exit_differs = 1;

/// The help of an option of the table that has a different or additional meaning in a command.
struct HelpOverride {
    std::string_view key;
    const char* help;
};

/// For the options of reading files, in commands that only read files.
inline constexpr HelpOverride csv_help[] = {
    {"csv_header", "whether CSV starts with a header line (default auto)"},
    {"csv_labels", "whether the first CSV column holds labels (default auto)"},
    {"csv_index", "whether the first CSV column is an index (default auto)"},
    {"csv_decimal", "the decimal mark of numbers in CSV (default .)"},
    {"csv_quotes", "whether \" quotes fields of CSV (default yes)"},
    {"csv_comments", "lines of CSV that begin with # are comments"}};

/// How those that report on files write: for people or for programs.
inline constexpr Names<bool, 2> report_forms{{{false, "table"}, {true, "json"}}};  // whether JSON
inline constexpr Option whole_output{
    .key = "output",
    .limits = {.expected = "a name of a file"},
    .argument = "FILE",
    .help = "write there, whole or not at all (default -, standard output)",
    .letter = 'o'};
inline constexpr Option report_format{.key = "format",
                                      .field = choice_among<report_forms>,
                                      .limits = {.expected = "table|json"},
                                      .help = "for people or for programs (default table)",
                                      .letter = 'f'};

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
extern const CommandRow batch_command, check_command, compare_command, completion_command,
    explain_command, help_command, inspect_command, merge_command, model_command, partial_command,
    plot_command, repro_command, scan_command, tokenize_command;

bool takes(const CommandRow& command, const Option& option);

/// The row of this name, or null.
const CommandRow* find_command(const Program& program, std::string_view name);

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
    bool of_result = false;  ///< of the config of a result, which also has what followed
};

struct Args {
    const Program* program = nullptr;
    const CommandRow* command = nullptr;
    std::optional<std::string> input;  ///< the word of a command that takes INPUT alone
    std::vector<std::string> words;    ///< other words that are not flags of the command, in order
    std::vector<FlagValue> flags;      ///< the last of each, in the order of the tables
    std::vector<std::string> flag_files;          ///< that gave some of them
    std::shared_ptr<const io::InputFile> result;  ///< that --config names, or null
    bool is_question = false;                     ///< the result has what it was computed on
    std::string message;                          ///< to print instead: help or version
    int exit_code = 0;                            ///< with a message

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
    std::optional<std::size_t> choice(std::string_view own) const;

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

/// Reads argv, and the files of flags that it and the environment name, by the tables of `program`,
/// to which the result points. Errors: kind usage, for errors before a command is known; others are
/// deferred to the command; those of read_flag_file.
Args parse(int argc, const char* const* argv, const Program& program);

/// The flags of every command; and the one that replaces a command.
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

/// Adds the flags of a file for the command of `args`, in the order of the file. Keys are those of
/// a request and of the command; paths of operands are relative to the file's folder. The file may
/// also be the config of a result, or the result itself, which `args` has then if it is one of a
/// mode. Keys of other commands are ignored if the environment names the file, since that file is
/// for all commands. Errors: kind io, input; kind usage at the key, for keys that no command has,
/// or not this one, for the config of another mode, and for invalid values.
void read_flag_file(const std::string& path, Origin origin, Args& args);

/// The keys of a request as flags of the command of `args`, which is not a mode; paths are relative
/// to the file's folder. The text of an array in place of a file's name is the array's. The request
/// may have `meta`, which is not a flag. Errors: the same, and kind usage for flags that are not
/// keys of requests.
std::vector<FlagValue> flags_of_request(const io::InputFile& file, Args args);

}  // namespace attn::cli
