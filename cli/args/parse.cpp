// argv as CLI11 reads it; see parse.hpp. Nothing else knows CLI11.
#include "cli/args/parse.hpp"

#include <algorithm>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>

#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"

namespace attn::cli {
namespace {

/// Where the descriptions of flags begin.
constexpr std::size_t help_column = 30;

/// A flag as it was added to a command.
struct AddedFlag {
    const Option* option;
    const CLI::Option* flag;
    const char* says;  ///< the text of a flag that takes none
};

using AddedFlags = std::vector<AddedFlag>;

struct AddedCommand {
    const CommandRow* row;
    const CLI::App* app;
    const CLI::Option* input;  ///< null where the command takes other words
    AddedFlags flags;
};

/// How help shows a flag. Its words take longer to put together than the rest, so that they are
/// only there for a page of help.
struct Shown {
    std::string group;   ///< empty: it does not
    bool is_on = false;  ///< the spelling of a boolean that changes its default is --no-NAME
    std::string argument{}, help{};
};

Shown shown_in(const CommandRow& command, const Option& option, bool for_help) {
    const auto told = std::find_if(command.told.begin(), command.told.end(),
                                   [&](const OwnHelp& own) { return own.key == option.key; });
    const bool is_told = told != command.told.end();
    const bool is_own = option.modes == 0;
    Shown shown;
    if (is_told || is_own)
        shown.group = "Options";
    else if (command.mode != nullptr)
        shown.group = option.group;
    shown.is_on = command.mode != nullptr && (option.on_in & in(command.mode->mode)) != 0;
    if (!for_help) return shown;
    shown.argument = argument_of(option);
    shown.help = is_told ? told->help : help_of(option);
    return shown;
}

/// Both spellings of a boolean are taken, so that a flag can override a request's key.
void add_boolean(CLI::App& app, const Option& option, const Shown& shown, AddedFlags& added) {
    const auto add = [&](const std::string& flag, bool is_shown, const char* says) {
        CLI::Option* const known = app.add_flag(flag, shown.help);
        known->group(is_shown ? shown.group : "")->disable_flag_override();
        added.push_back({&option, known, says});
    };
    add(flag_of(option), !shown.is_on, "true");
    add("--no-" + flag_name(option), shown.is_on, "false");
}

void add_flag(CLI::App& app, const Option& option, const Shown& shown, AddedFlags& added) {
    if (is_boolean(option)) return add_boolean(app, option, shown, added);
    const std::string letter =
        option.letter != 0 ? std::string("-") + option.letter + "," : std::string();
    const std::string flag = letter + flag_of(option);
    if (std::holds_alternative<Switch>(option.field)) {
        CLI::Option* const known = app.add_flag(flag, shown.help);
        known->group(shown.group)->disable_flag_override();
        added.push_back({&option, known, ""});
        return;
    }
    CLI::Option* const known = app.add_option(flag, shown.help);
    known->type_name(shown.argument)->group(shown.group);
    added.push_back(
        {&option, known->multi_option_policy(CLI::MultiOptionPolicy::TakeAll), nullptr});
}

AddedFlags add_flags(CLI::App& app, const CommandRow& command, const Program& program,
                     bool for_help) {
    AddedFlags added;
    for (const Option& option : command.own)
        add_flag(app, option, shown_in(command, option, for_help), added);
    for (const Option& option : program.options)
        if (takes(command, option))
            add_flag(app, option, shown_in(command, option, for_help), added);
    return added;
}

CLI::App& add_command(CLI::App& program, const CommandRow& command, bool with_summary) {
    CLI::App& app =
        *program.add_subcommand(std::string(command.name), with_summary ? command.summary : "");
    app.allow_extras();
    app.set_help_flag("-h,--help", "show this help")->group("Help");
    return app;
}

/// The one word of a command that takes no others. Those of the rest remain as they stand:
/// CLI11 2.1 hands them over in another order where flags stand before them.
const CLI::Option* add_input(CLI::App& app, const CommandRow& command) {
    if (command.input == nullptr) return nullptr;
    const std::string input_help = command.input;
    return app.add_option("INPUT", input_help)->type_name(" ");
}

/// CLI11 2.1 leaves long descriptions on one line.
std::string wrapped_help(const std::string& help) {
    constexpr std::size_t width = 100;
    std::string text;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line); text += line + "\n")
        while (line.size() > width && line.starts_with(' ')) {
            const std::size_t blank = line.rfind(' ', width);
            if (blank == std::string::npos || blank <= help_column) break;
            text += line.substr(0, blank) + "\n";
            line.replace(0, blank + 1, help_column, ' ');
        }
    return text;
}

/// CLI11's help between our words. `usage` follows the name and [OPTIONS].
std::string page_of(std::string flags, const std::string& first_line, const char* examples,
                    const std::string& usage) {
    // CLI11 parts its groups with two blank lines.
    for (std::size_t at = 0; (at = flags.find("\n\n\n", at)) != std::string::npos;)
        flags.erase(at, 1);
    const std::string before = "[OPTIONS]";
    if (!usage.empty()) flags.insert(flags.find(before) + before.size(), " " + usage);
    return first_line + "\n\nExamples:\n" + examples + "\n" + wrapped_help(flags);
}

CLI::Option* prepare(CLI::App& app) {
    app.set_help_flag("-h,--help", "show this help");
    const std::string version_help = "show version, compiler and kernels";
    CLI::Option* const version = app.add_flag("--version", version_help);
    app.allow_extras();
    app.require_subcommand(0, 1);
    app.get_formatter()->column_width(help_column);
    return version;
}

std::string page_of_program(const CLI::App& app, const Program& program) {
    return page_of(app.help(), program.summary, program.examples, "") +
           "\nEach command has its own help: attn self --help\n";
}

/// Behind `--` every word is a name, whatever it begins with. CLI11 would hand them to the program
/// instead of the command.
void settle_names(std::vector<std::string>& words) {
    const auto mark = std::find(words.begin(), words.end(), "--");
    if (mark == words.end()) return;
    for (auto name = words.erase(mark); name != words.end(); ++name)
        if (name->starts_with('-') && *name != "-") name->insert(0, "./");
}

[[noreturn]] void fail_mismatch(std::string text) {  // "--seed: 1 required N missing"
    if (!text.starts_with('-')) text.insert(0, "--");
    const bool has_value = text.find("override") != std::string::npos;
    throw Error(ErrorKind::usage, text.substr(0, text.find_first_of(": ")),
                has_value ? "stands with a value; expected none"
                          : "is without its value; expected one after it");
}

void check_before_command(const std::vector<std::string>& words, const Program& program) {
    std::vector<std::string> names;
    for (const CommandRow* command : program.commands) names.emplace_back(command->name);
    for (const std::string& word : words)
        throw Error(ErrorKind::usage, word,
                    word.starts_with('-')
                        ? std::string("unknown flag before a command; expected --help or --version")
                        : "unknown command; the nearest is " + did_you_mean(word, names));
}

/// What the flags say. CLI11 keeps no order between flags of other names.
std::vector<Given> given_of(const AddedFlags& added) {
    std::vector<Given> given;
    for (const AddedFlag& flag : added) {
        if (flag.flag->count() == 0) continue;
        if (flag.says != nullptr)
            given.push_back({flag.option, flag.says});
        else
            for (const std::string& text : flag.flag->results())
                given.push_back({flag.option, text});
    }
    return given;
}

}  // namespace

std::string help_page(const Program& program, const CommandRow& command) {
    CLI::App top{"", "attn"};
    prepare(top);
    CLI::App& app = add_command(top, command, false);
    add_input(app, command);
    add_flags(app, command, program, true);
    return page_of(app.help("attn"),
                   "attn " + std::string(command.name) + ": " + command.summary + command.note,
                   command.examples, command.usage) +
           command.ending;
}

Args parse(int argc, const char* const* argv, const Program& program) {
    // `attn help causal` is `attn causal --help`, as in git.
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (!words.empty() && words[0] == "help") {
        words.erase(words.begin());
        words.emplace_back("--help");
    }
    settle_names(words);

    CLI::App top{"", "attn"};
    const CLI::Option* const version = prepare(top);
    std::vector<AddedCommand> commands;
    for (const CommandRow* command : program.commands) {
        CLI::App& app = add_command(top, *command, true);
        // Two hundred flags would double the start.
        const bool is_named = std::find(words.begin(), words.end(), command->name) != words.end();
        commands.push_back({command, &app, add_input(app, *command), {}});
        if (is_named) commands.back().flags = add_flags(app, *command, program, false);
    }
    Args args;
    args.program = &program;
    const AddedCommand* named = nullptr;
    const auto find_named = [&] {
        for (const AddedCommand& command : commands)
            if (command.app->parsed()) named = &command;
        if (named != nullptr) args.command = named->row;
    };

    // CLI11 would take the next word for the value.
    for (const std::string& word : words)
        if (word.starts_with("--") && word.ends_with("="))
            throw Error(ErrorKind::usage, word.substr(0, word.size() - 1),
                        "is without its value; expected one after '='");
    try {
        std::reverse(words.begin(), words.end());  // as CLI11 takes them
        top.parse(words);
    } catch (const CLI::CallForHelp&) {
        find_named();
        args.message = args.command != nullptr ? help_page(program, *args.command)
                                               : page_of_program(top, program);
        return args;
    } catch (const CLI::ArgumentMismatch& error) {
        fail_mismatch(error.what());
    } catch (const CLI::ParseError& error) {
        throw Error(ErrorKind::usage, "command line", error.what());
    }
    check_before_command(top.remaining(), program);
    find_named();
    if (version->count() != 0) {
        args.message = program.version();
    } else if (named == nullptr) {
        args.message = page_of_program(top, program);
        args.exit_code = 2;
    } else {
        args.words = named->app->remaining();
        args.given = given_of(named->flags);
        if (named->input != nullptr && named->input->count() != 0)
            args.input = named->input->results().front();
    }
    return args;
}

}  // namespace attn::cli
