// argv to what is asked for; see command_line.hpp. CLI11 is known here, in flags.* and in the
// commands.
#include "cli/args/command_line.hpp"

#include <algorithm>
#include <memory>

#include "cli/args/commands.hpp"
#include "cli/request/version.hpp"
#include "core/base/did_you_mean.hpp"
#include "core/base/error.hpp"

namespace attn::cli {
namespace {

constexpr const char* main_examples =
    "  attn self --example journey --d-out 2 --seed 789 --format torch\n"
    "  attn causal tokens.csv --d-out 2 --seed 123 --emit all\n"
    "  attn multihead request.json --heads 4 -o result.json\n"
    "  attn plot result.json -o heads.html\n"
    "  attn explain self --example journey --token 1\n";

/// Every command of the program. Flags are only added to the one that is named.
std::vector<std::unique_ptr<Command>> add_commands(CLI::App& program,
                                                   const std::vector<std::string>& words) {
    const auto is_named = [&](std::string_view name) {
        return std::find(words.begin(), words.end(), name) != words.end();
    };
    std::vector<std::unique_ptr<Command>> commands;
    for (const auto& [mode, name] : mode_names)
        commands.push_back(std::make_unique<ModeCommand>(program, mode, is_named(name)));
    commands.push_back(std::make_unique<BatchCommand>(program, is_named("batch")));
    commands.push_back(std::make_unique<ExplainCommand>(program, is_named("explain")));
    commands.push_back(std::make_unique<CompareCommand>(program));
    commands.push_back(std::make_unique<PlotCommand>(program, is_named("plot")));
    return commands;
}

}  // namespace

Command::Command(CLI::App& program, const std::string& name, const std::string& summary)
    : app_(*program.add_subcommand(name, summary)) {
    app_.allow_extras();
    app_.set_help_flag("-h,--help", "show this help")->group("Help");
}

CommandLine message_only(std::string message, int exit_code) {
    CommandLine line;
    line.message = std::move(message);
    line.exit_code = exit_code;
    return line;
}

namespace {

/// Behind `--` every word is a name, whatever it begins with. CLI11 would hand them to the program
/// instead of the command.
void settle_names(std::vector<std::string>& words) {
    const auto mark = std::find(words.begin(), words.end(), "--");
    if (mark == words.end()) return;
    for (auto name = words.erase(mark); name != words.end(); ++name)
        if (name->starts_with('-') && *name != "-") name->insert(0, "./");
}

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
    // `attn help causal` is `attn causal --help`, as in git.
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (!words.empty() && words[0] == "help") {
        words.erase(words.begin());
        words.emplace_back("--help");
    }
    settle_names(words);

    CLI::App program{"", "attn"};
    program.set_help_flag("-h,--help", "show this help");
    const std::string version_help = "show version, compiler and kernels";
    CLI::Option* version = program.add_flag("--version", version_help);
    program.allow_extras();
    program.require_subcommand(0, 1);
    program.get_formatter()->column_width(help_column);
    const auto commands = add_commands(program, words);
    const auto parsed = [&] {
        return std::find_if(commands.begin(), commands.end(),
                            [](const auto& command) { return command->is_parsed(); });
    };
    const auto help_of_program = [&] {
        return help_text(program, main_examples,
                         "attention from the shell, with PyTorch's numbers") +
               "\nEach command has its own help: attn self --help\n";
    };

    // CLI11 would take the next word for the value.
    for (const std::string& word : words)
        if (word.starts_with("--") && word.ends_with("="))
            throw Error(ErrorKind::usage, word.substr(0, word.size() - 1),
                        "is without its value; expected one after '='");
    try {
        std::reverse(words.begin(), words.end());  // as CLI11 takes them
        program.parse(words);
    } catch (const CLI::CallForHelp&) {
        const auto command = parsed();
        return message_only(command == commands.end() ? help_of_program() : (*command)->help(), 0);
    } catch (const CLI::ArgumentMismatch& error) {  // what() is "--seed: 1 required N missing"
        std::string text = error.what();
        if (!text.starts_with('-')) text.insert(0, "--");
        const bool has_value = text.find("override") != std::string::npos;
        throw Error(ErrorKind::usage, text.substr(0, text.find_first_of(": ")),
                    has_value ? "stands with a value; expected none"
                              : "is without its value; expected one after it");
    } catch (const CLI::ParseError& error) {
        throw Error(ErrorKind::usage, "command line", error.what());
    }
    std::vector<std::string> names;
    names.reserve(commands.size());
    for (const auto& command : commands) names.push_back(command->name());
    for (const std::string& word : program.remaining())
        throw Error(ErrorKind::usage, word,
                    word.starts_with('-')
                        ? std::string("unknown flag before a command; expected --help or --version")
                        : "unknown command; the nearest is " + did_you_mean(word, names));
    if (version->count() != 0) return message_only(version_text(), 0);
    const auto command = parsed();
    return command == commands.end() ? message_only(help_of_program(), 2) : (*command)->read();
}

}  // namespace attn::cli
