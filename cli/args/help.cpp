#include "cli/args/args.hpp"

#include <algorithm>

#include "io/text/text.hpp"

namespace attn::cli {

constinit const Option config_option{
    .key = "config",
    .argument = "FILE",
    .help =
        "a JSON object of flags, or a result's config; the command line overrides it (default: "
        "the environment's ATTN_CONFIG, or none)"};

constinit const Option help_option{
    .key = "help",
    .field = no_value,
    .help = "-h: the common flags of the command; --help: all of them. Alone: the commands",
    .letter = 'h'};

constinit const Option version_option{
    .key = "version",
    .field = no_value,
    .help = "the version, the compiler and the kernels that run here; without a command",
    .letter = 'V'};

namespace {

constexpr std::size_t list_column = 14, help_column = 30, short_help_column = 24, widest_page = 100;

/// A flag and its description, in two columns; a long flag has a separate line.
std::string entry(const std::string& flag, std::string_view help, std::size_t at,
                  std::size_t columns) {
    std::string line = "  " + flag;
    const std::size_t width = io::display_width(line);
    const bool is_narrow = columns < at + 20;
    const std::size_t column = is_narrow ? 6 : at;
    if (width + 2 > column)
        line += '\n' + std::string(column, ' ');
    else
        line += std::string(column - width, ' ');
    return line + io::wrapped(help, columns, column, column) + '\n';
}

/// Paragraphs are separated by empty lines; one that begins with a blank is not wrapped.
std::string paragraphs(std::string_view text, std::size_t columns) {
    std::string page;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find("\n\n"), text.size());
        const std::string_view paragraph = text.substr(0, end);
        if (!page.empty()) page += '\n';
        page += (paragraph.starts_with(' ') ? std::string(paragraph)
                                            : io::wrapped(paragraph, columns)) +
                '\n';
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return page;
}

std::string headline(const CommandRow& command, std::size_t columns) {
    return io::wrapped("attn " + std::string(command.name) + ": " + command.summary + command.note,
                       columns, 2) +
           "\n";
}

/// "Usage: attn explain MODE [INPUT] [FLAGS]".
std::string usage_line(const CommandRow& command) {
    const std::string_view usage = command.usage;
    const std::string words =
        command.input != nullptr ? "[INPUT]" : std::string(usage.substr(0, usage.find("\n\n")));
    return "Usage: attn " + std::string(command.name) + (words.empty() ? "" : " " + words) +
           " [FLAGS]\n";
}

/// The description of the words.
std::string words_of(const CommandRow& command, std::size_t columns) {
    if (command.input != nullptr) return "\n" + entry("INPUT", command.input, 9, columns);
    const std::string_view usage = command.usage;
    const std::size_t end = usage.find("\n\n");
    return end == std::string_view::npos ? "" : "\n" + paragraphs(usage.substr(end + 2), columns);
}

std::vector<ShownOption> shown_options(const Program& program, const CommandRow& command) {
    std::vector<ShownOption> shown = taken_options(program, command);
    std::erase_if(shown, [](const ShownOption& option) { return option.group == nullptr; });
    return shown;
}

/// "-s, --seed N", without the names of a long choice and the other form of a boolean.
std::string short_spelling(const Option& option) {
    const std::string argument = argument_of(option), flag = all_names_of(option);
    const bool is_long = flag.size() + argument.size() + 5 > short_help_column;
    return flag + (argument.empty() ? "" : is_long ? " NAME" : " " + argument);
}

}  // namespace

std::vector<ShownOption> taken_options(const Program& program, const CommandRow& command) {
    const bool shows_table = command.mode != nullptr || (command.takes & (in_model | in_scan)) != 0;
    std::vector<ShownOption> taken;
    for (const Option& option : command.own)
        taken.push_back(
            {&option, help_of(option), *option.group == '\0' ? "Options" : option.group});
    for (const Option& option : program.options) {
        if (!takes(command, option)) continue;
        const auto* const shown = find_row(command.shown_flags, &HelpOverride::key, option.key);
        taken.push_back({&option, shown != nullptr ? shown->help : help_of(option),
                         shows_table        ? option.group
                         : shown != nullptr ? "Options"
                                            : nullptr});
    }
    return taken;
}

std::string spelling_of(const Option& option) {
    const std::string argument = argument_of(option);
    return all_names_of(option) + (is_boolean(option) ? ", --no-" + flag_name(option) : "") +
           (argument.empty()       ? ""
            : argument.size() > 64 ? " NAME"
                                   : " " + argument);
}

std::string list_entry(std::string_view name, std::string_view summary, std::size_t columns) {
    return entry(std::string(name), summary, list_column, columns);
}

std::string command_list(const Program& program, std::size_t columns) {
    std::string list;
    for (const CommandRow* command : program.commands) {
        for (const CommandGroup& group : program.groups)
            if (group.first == command) list += std::string("\n") + group.title + ":\n";
        list += list_entry(command->name, command->summary, columns);
    }
    return list;
}

std::string program_page(const Program& program, std::size_t columns) {
    columns = std::min(columns, widest_page);
    std::string page = std::string("attn: ") + program.summary + "\n\nExamples:\n" +
                       program.examples + "\nUsage: attn COMMAND [INPUT] [FLAGS]\n" +
                       command_list(program, columns);
    return page + "\n" +
           io::wrapped(
               "attn COMMAND -h shows its flags, attn help the manual, attn -V the version.",
               columns) +
           "\n";
}

std::string short_page(const Program& program, const CommandRow& command, std::size_t columns) {
    columns = std::min(columns, widest_page);
    std::string page = headline(command, columns) + "\n" + usage_line(command) + "\n";
    const auto add = [&](const Option& option, std::string_view help) {
        page += entry(short_spelling(option), help, short_help_column, columns);
    };
    constexpr std::size_t most = 12;  // a page has 24 lines
    std::size_t count = 0;
    const std::vector<ShownOption> all = shown_options(program, command);
    for (const HelpOverride& common : command.common_flags)
        for (const ShownOption& shown : all)
            if (shown.option->key == common.key && count++ < most) add(*shown.option, common.help);
    if (command.common_flags.empty())
        for (const ShownOption& shown : all) add(*shown.option, shown.help);
    page += std::string("\nExamples:\n") + command.examples + "\n";
    return page +
           io::wrapped("attn " + std::string(command.name) + " --help shows " +
                           (command.common_flags.empty() ? "more" : "every flag") +
                           "; attn help lists pages on formats, models and more.",
                       columns) +
           "\n";
}

std::string full_page(const Program& program, const CommandRow& command, std::size_t columns) {
    columns = std::min(columns, widest_page);
    std::string page = headline(command, columns) + "\nExamples:\n" + command.examples + "\n" +
                       usage_line(command) + words_of(command, columns);
    std::string_view group;
    for (const ShownOption& shown : shown_options(program, command)) {
        if (shown.group != group) page += "\n" + std::string(group = shown.group) + ":\n";
        page += entry(spelling_of(*shown.option), shown.help, help_column, columns);
    }
    if (!command.explains_flags)
        page += "\nHelp:\n" +
                entry(spelling_of(config_option), config_option.help, help_column, columns) +
                entry("-h", "the common flags", help_column, columns) +
                entry("--help", "this page", help_column, columns);
    return page + (*command.ending == 0 ? "" : "\n" + paragraphs(command.ending, columns));
}

}  // namespace attn::cli
