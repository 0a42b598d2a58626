#include "cli/help/help.hpp"

#include <algorithm>
#include <sstream>

#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/output.hpp"
#include "io/file/source.hpp"

namespace attn::cli {

extern const std::string_view completion_bash, completion_zsh, completion_fish;  // of the build

namespace {

struct Flag {
    std::string spelling, help;
    const Option* option;  ///< null: help
};

/// All flags that a command takes, its own first.
std::vector<Flag> flags_of(const Program& program, const CommandRow& command) {
    std::vector<Flag> flags;
    const auto add = [&](const Option& option, const std::string& with_default) {
        const std::string help = with_default.substr(0, with_default.find(" (default"));
        flags.push_back({flag_of(option), help, &option});
        if (is_boolean(option)) flags.push_back({"--no-" + flag_name(option), help, &option});
        if (option.letter != 0) flags.push_back({std::string("-") + option.letter, help, &option});
    };
    for (const ShownOption& shown : taken_options(program, command)) add(*shown.option, shown.help);
    add(config_option, config_option.help);
    flags.push_back({"--help", "every flag", nullptr});
    flags.push_back({"-h", "the common flags", nullptr});
    return flags;
}

/// The values of a flag; each begins with `start`, and a name of a list with those before it.
Completion values_of(const Option& option, const std::string& start, const std::string& value) {
    Completion values{"words"};
    const std::string argument = argument_of(option);
    if (names_file(option)) return {"files"};
    if (argument == "LIST") {
        const std::string before = start + value.substr(0, value.rfind(',') + 1);
        values = {"list", {{before + "all", ""}}};
        for (const ArrayRow& row : emitted_arrays)
            values.words.emplace_back(before + std::string(row.name), "");
        return values;
    }
    const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
    std::istringstream names(argument);
    for (std::string name; std::getline(names, name, '|');) {
        name.resize(std::min(name.find('['), name.size()));  // of what may follow
        if (std::ranges::none_of(name, is_capital)) values.words.emplace_back(start + name, "");
    }
    return values;
}

Completion commands_of(const Program& program) {
    Completion commands{"words"};
    for (const CommandRow* command : program.commands)
        commands.words.emplace_back(command->name, command->summary);
    for (const char* flag : {"-h", "--help"}) commands.words.emplace_back(flag, "the commands");
    for (const char* flag : {"-V", "--version"})
        commands.words.emplace_back(flag, "version, compiler and kernels");
    return commands;
}

}  // namespace

Completion completion_of(const Program& program, std::string_view line) {
    // Quotes need no attention: they are in names of files only, which the shell completes.
    std::istringstream stream{std::string(line)};
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (line.empty() || line.back() == ' ') words.emplace_back();
    if (words.size() < 3) return commands_of(program);
    const CommandRow* const command = find_command(program, words[1]);
    if (command == nullptr) return {"files"};
    const std::vector<Flag> flags = flags_of(program, *command);
    const std::string& last = words.back();
    const std::size_t sign = last.starts_with("--") ? last.find('=') : std::string::npos;
    const std::size_t start = sign == std::string::npos ? 0 : sign + 1;
    const std::string flag = start == 0 ? words[words.size() - 2] : last.substr(0, sign);
    for (const Flag& known : flags)
        if (known.spelling == flag && known.option != nullptr && has_value(*known.option))
            return values_of(*known.option, last.substr(0, start), last.substr(start));
    Completion found{"words"};
    if (last.starts_with('-'))
        for (const Flag& known : flags) found.words.emplace_back(known.spelling, known.help);
    else if (words.size() == 3 && command->names != nullptr)
        for (const std::string_view name : command->names(program))
            found.words.emplace_back(name, "");
    else
        found.kind = "files";
    return found;
}

namespace {

/// One script per shell, which asks the program with `attn completion --words LINE`.
struct Shell {
    std::string_view name;
    const std::string_view* script;
};
constexpr Shell shells[] = {
    {"bash", &completion_bash}, {"zsh", &completion_zsh}, {"fish", &completion_fish}};

std::vector<std::string_view> shell_names(const Program&) {
    std::vector<std::string_view> names;
    for (const Shell& shell : shells) names.push_back(shell.name);
    return names;
}

int run_completion(const Args& args) {
    const std::vector<std::string>& words = args.names();
    if (const auto line = args.text("words")) {
        if (!words.empty())
            throw Error(ErrorKind::usage, "--words", "conflicts with SHELL '",
                        io::shortened(words[0]), "'; expected one of them");
        const Completion found = completion_of(*args.program, *line);
        std::string text(found.kind);
        for (const auto& [word, help] : found.words)
            text += '\n' + word + (help.empty() ? "" : '\t' + help);
        io::show(text + '\n');
        return 0;
    }
    const std::string expected = "expected " + listed(shell_names(*args.program));
    if (words.empty())
        throw Error(ErrorKind::usage, "attn completion", "no name of a shell; " + expected);
    if (words.size() > 1)
        throw Error(ErrorKind::usage, io::shortened(words[1]), "a second shell; expected one");
    for (const Shell& shell : shells)
        if (shell.name == words[0]) return io::show(*shell.script), 0;
    throw Error(ErrorKind::usage, "attn completion " + io::shortened(words[0]),
                "no such shell; " + expected);
}

constexpr Option completion_options[] = {
    {.key = "words",
     .argument = "LINE",
     .help = "for the scripts: words, list or files, then the words that may end the line"}};

}  // namespace

constexpr CommandRow completion_command{
    .name = "completion",
    .summary = "a script that completes commands, flags and names in your shell",
    .examples =
        "  source <(attn completion bash)\n"
        "  attn completion zsh > ~/.zfunc/_attn\n"
        "  attn completion fish > ~/.config/fish/completions/attn.fish\n",
    .usage = "SHELL\n\nSHELL is bash, zsh or fish.",
    .own = completion_options,
    .names = shell_names,
    .run = run_completion};

}  // namespace attn::cli
