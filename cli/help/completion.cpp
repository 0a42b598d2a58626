#include "cli/help/help.hpp"

#include <algorithm>
#include <sstream>

#include "cli/args/args.hpp"
#include "core/operator/arrays.hpp"

namespace attn::cli {
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
    const bool is_free = option.field.kind != FieldKind::choice &&
                         std::any_of(argument.begin(), argument.end(), is_capital);
    std::istringstream names(is_free ? "" : argument);
    for (std::string name; std::getline(names, name, '|');)
        values.words.emplace_back(start + name, "");
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

}  // namespace attn::cli
