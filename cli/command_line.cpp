// argv to a request: the only place that knows CLI11.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>

#include <CLI/CLI.hpp>

#include "cli/options.hpp"
#include "cli/version.hpp"
#include "core/error.hpp"
#include "core/nearest.hpp"
#include "io/number_array.hpp"
#include "io/source.hpp"

namespace attn::cli {
namespace {

using nlohmann::json;

struct ModeHelp {
    Mode mode;
    const char* summary;
    const char* examples;
};

constexpr ModeHelp mode_helps[] = {
    {Mode::self, "one head, every token attends to every token",
     "  attn self --example journey --d-out 2 --seed 789\n"
     "  attn self tokens.csv --init none --format table\n"
     "  attn self --text \"Life is short, eat dessert first\" --embed-seed 123 --format torch\n"},
    {Mode::causal, "one head, a token attends to itself and to the tokens before it",
     "  attn causal --example journey --d-out 2 --seed 789 --format torch\n"
     "  attn causal tokens.json --dropout 0.5 --seed 123 -o result.json\n"
     "  attn self tokens.json | attn causal - --emit scores,mask,attention_weights\n"},
    {Mode::multihead, "h heads, causal unless --no-causal, output projection",
     "  attn multihead --example pair --heads 2 --seed 789\n"
     "  attn multihead tokens.json --heads 4 --init mha --no-causal --qkv-bias\n"
     "  attn multihead tokens.csv --heads 2 --style wrapper --d-out 2 --format table\n"},
    {Mode::cross, "queries from INPUT, keys and values from --context",
     "  attn cross tokens.csv --context tokens.json --d-out 4\n"
     "  attn cross tokens.json --context tokens.json --heads 2 --causal --format table\n"},
    {Mode::sdpa, "the bare operator softmax(scale Q K^T + bias) V, no projections",
     "  attn sdpa --query q.json --key k.json --value v.json\n"
     "  attn sdpa --query q.json --key k.json --value v.json --causal --window 1 --softcap 30\n"
     "  echo '{\"query\": [[1]], \"key\": [[0.1], [0.5]], \"value\": [[0], [1]]}' | attn sdpa\n"},
};

constexpr const char* main_examples =
    "  attn self --example journey --d-out 2 --seed 789 --format torch\n"
    "  attn causal tokens.csv --d-out 2 --seed 123 --emit all\n"
    "  attn multihead request.json --heads 4 -o result.json\n";

/// A flag's text as the value that its key would have. Text that does not fit stays a string, and
/// the option's own check says what is wrong with it.
json value_of(Kind kind, const std::string& text) {
    const char* const end = text.data() + text.size();
    const auto parsed = [&](auto number) -> json {
        const auto [stop, error] = std::from_chars(text.data(), end, number);
        return error == std::errc{} && stop == end ? json(number) : json(text);
    };
    switch (kind) {
        case Kind::whole:
        case Kind::seed:
            return text.starts_with('-') ? parsed(std::int64_t{}) : parsed(std::uint64_t{});
        case Kind::real: {
            const io::ParsedNumber number = io::parse_loose_number(text);
            return !text.empty() && number.length == text.size() ? json(number.value) : json(text);
        }
        case Kind::boolean:
        case Kind::text: break;
    }
    return text;
}

void store_flag(Request& request, const Option& option, const json& value,
                const std::string& where) {
    const std::string problem = option.store(request, value);
    if (!problem.empty()) throw Error(ErrorKind::usage, where, problem);
    request.places[option.key] = where;
}

/// CLI11's view of one mode: its flags, kept to be asked for after the parse.
struct ModeCommand {
    CLI::App* app = nullptr;
    CLI::Option* input = nullptr;
    std::map<std::string, CLI::Option*> flags;  // by spelling, without dashes
};

/// Flags are added only where the mode is named: two hundred of them would double the start.
ModeCommand add_mode(CLI::App& program, const ModeHelp& help, bool is_named) {
    ModeCommand command;
    const std::string name(name_of(mode_names, help.mode));
    command.app = program.add_subcommand(name, help.summary);
    command.app->allow_extras();
    command.app->set_help_flag("-h,--help", "show this help")->group("Help");
    const std::string input_help =
        help.mode == Mode::sdpa
            ? "a request as JSON, or npz or safetensors, with query, key and value; - or nothing: "
              "standard input"
            : "a matrix, a batch, a request or an earlier result, as json, ndjson, csv, npy, npz "
              "or safetensors (FILE:NAME picks one of several arrays); - or nothing: standard "
              "input";
    command.input = command.app->add_option("INPUT", input_help);
    command.input->type_name(" ");
    if (!is_named) return command;
    for (const Option& option : options()) {
        if ((option.modes & in(help.mode)) == 0 || !option.is_flag) continue;
        const std::string spelling = option.name == "output" ? "-o,--output" : "--" + option.name;
        if (option.kind != Kind::boolean) {
            command.flags[option.name] = command.app->add_option(spelling, option.help)
                                             ->type_name(option.argument)
                                             ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                                             ->group(option.group);
            continue;
        }
        const bool negated = (option.negated_in & in(help.mode)) != 0;
        // Both spellings are taken, so that a flag can override a request's key; help shows the
        // one that changes the default.
        command.flags[option.name] = command.app->add_flag(spelling, option.help)
                                         ->group(negated ? "" : option.group)
                                         ->disable_flag_override();
        command.flags["no-" + option.name] =
            command.app->add_flag("--no-" + option.name, option.help)
                ->group(negated ? option.group : "")
                ->disable_flag_override();
    }
    return command;
}

[[noreturn]] void fail_unknown(const ModeCommand& command, Mode mode, const std::string& word) {
    if (!word.starts_with('-') || word == "-")
        throw Error(ErrorKind::usage, word, "a second input; expected one");
    const std::string flag = word.substr(0, word.find('='));
    const std::string bare = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
    const std::string positive = bare.starts_with("no-") ? bare.substr(3) : bare;
    const std::string mode_name(name_of(mode_names, mode));
    for (const Option& option : options())
        if (option.name == bare || (option.kind == Kind::boolean && option.name == positive))
            throw Error(ErrorKind::usage, flag,
                        "no flag of attn " + mode_name + "; see attn " + mode_name + " --help");
    std::vector<std::string> known{"help"};
    for (const auto& [name, option] : command.flags) known.push_back(name);
    // One letter is near to everything.
    throw Error(ErrorKind::usage, flag,
                bare.size() > 1
                    ? "unknown flag; the nearest known one is --" + nearest(bare, known)
                    : "unknown flag; attn " + mode_name + " --help lists the known ones");
}

Request read_mode(const ModeCommand& command, Mode mode) {
    Request request;
    request.settings.mode = mode;
    for (const std::string& word : command.app->remaining()) {
        // An array of standard input, which CLI11 takes for a flag.
        const bool is_input = word.starts_with("-:") && request.input.empty();
        if (is_input)
            request.input = word;
        else if (word != "--")
            fail_unknown(command, mode, word);
    }
    for (const Option& option : options()) {
        const auto given = [&](const std::string& name) {
            const auto found = command.flags.find(name);
            return found != command.flags.end() && found->second->count() != 0 ? found->second
                                                                               : nullptr;
        };
        const CLI::Option* positive = given(option.name);
        const CLI::Option* negative =
            option.kind == Kind::boolean ? given("no-" + option.name) : nullptr;
        if (positive != nullptr && negative != nullptr)
            throw Error(ErrorKind::usage, "--" + option.name,
                        "contradicts --no-" + option.name + "; expected one of them");
        if (negative != nullptr) store_flag(request, option, false, "--no-" + option.name);
        if (positive == nullptr) continue;
        if (option.kind == Kind::boolean) {
            store_flag(request, option, true, "--" + option.name);
            continue;
        }
        if (positive->results().size() > 1)
            throw Error(ErrorKind::usage, "--" + option.name, "given twice; expected once");
        const std::string text = positive->results().front();
        if (io::find_invalid_utf8(text) != std::string::npos)
            throw Error(ErrorKind::usage, "--" + option.name, "not UTF-8; expected UTF-8 text");
        store_flag(request, option, value_of(option.kind, text),
                   "--" + option.name + " " + (text.empty() ? "''" : io::shortened(text)));
    }
    if (command.input->count() != 0) {
        if (!request.input.empty()) fail_unknown(command, mode, request.input.substr(0, 1));
        request.input = command.input->results().front();
        if (request.input.empty())
            throw Error(ErrorKind::usage, "INPUT", "an empty name; expected a path or -");
    }
    return request;
}

/// True where only standard input is left to read from, and that is a keyboard.
bool waits_for_keyboard(const Request& request) {
    const bool given = !request.input.empty() || request.example || request.text ||
                       request.has_file("query") || request.has_file("key") ||
                       request.has_file("value");
    return !given && ::isatty(STDIN_FILENO) != 0;
}

std::string help_text(CLI::App& app, const char* examples, const char* first_line) {
    std::string flags = app.get_parent() == nullptr ? app.help() : app.help("attn");
    // CLI11 parts its groups with two blank lines.
    for (std::size_t at = 0; (at = flags.find("\n\n\n", at)) != std::string::npos;)
        flags.erase(at, 1);
    return std::string(first_line) + "\n\nExamples:\n" + examples + "\n" + flags;
}

CommandLine message_only(std::string message, int exit_code) {
    CommandLine line;
    line.message = std::move(message);
    line.exit_code = exit_code;
    return line;
}

/// `attn compare` has flags of its own: it computes nothing.
class CompareCommand {
public:
    explicit CompareCommand(CLI::App& program)
        : app_(program.add_subcommand("compare", "how far two results are apart, array by array")) {
        app_->allow_extras();
        app_->set_help_flag("-h,--help", "show this help")->group("Help");
        const std::string side =
            "a result, or an array in any format (FILE:NAME picks one); - is standard input";
        a_ = app_->add_option("A", side)->type_name(" ");
        b_ = app_->add_option("B", side)->type_name(" ");
        const auto add = [&](const char* flag, const char* type, const std::string& help) {
            flags_[flag] = app_->add_option(std::string("--") + flag, help)
                               ->type_name(type)
                               ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        };
        add("atol", "X", "absolute difference that counts as equal (default 0)");
        add("rtol", "X", "the same relative to B, added to it (default 0)");
        add("ulp", "N", "units in the last place that count as equal (default 0)");
        add("dtype", "float32|float64", "type whose units are counted (default the results')");
        add("format", "table|json", "for people or for programs (default table)");
        const std::string nan_help = "NaN equals NaN (default off)";
        equal_nan_ = app_->add_flag("--equal-nan", nan_help)->disable_flag_override();
    }

    bool parsed() const { return app_->parsed(); }

    std::string help() const {
        app_->description("");
        return help_text(*app_,
                         "  attn compare tokens.json tokens.csv --atol 1e-6 --ulp 4\n"
                         "  attn causal tokens.csv | attn compare - result.json --format json\n",
                         "attn compare: how far two results are apart, array by array; exit code 1 "
                         "where they differ");
    }

    CompareRequest read() const {
        for (const std::string& word : app_->remaining())
            throw Error(ErrorKind::usage, word,
                        word.starts_with('-')
                            ? "unknown flag; attn compare --help lists the known ones"
                            : "a third input; expected two");
        if (a_->count() == 0 || b_->count() == 0)
            throw Error(ErrorKind::usage, "attn compare", "one input is missing; expected A and B");
        CompareRequest request;
        request.a = a_->results().front();
        request.b = b_->results().front();
        request.tolerance.atol = tolerance("atol");
        request.tolerance.rtol = tolerance("rtol");
        const json ulp = value_of(Kind::whole, text("ulp").value_or("0"));
        if (!ulp.is_number_unsigned()) fail("ulp", "a whole number from 0");
        request.tolerance.ulp = ulp.get<std::uint64_t>();
        request.tolerance.equal_nan = equal_nan_->count() != 0;
        const std::optional<std::string> dtype = text("dtype"), format = text("format");
        if (dtype && dtype != "float32" && dtype != "float64") fail("dtype", "float32|float64");
        if (format && format != "table" && format != "json") fail("format", "table|json");
        if (dtype) request.dtype = dtype == "float64" ? Dtype::float64 : Dtype::float32;
        request.json = format == "json";
        return request;
    }

private:
    std::optional<std::string> text(const char* flag) const {
        const CLI::Option* option = flags_.at(flag);
        if (option->count() == 0) return {};
        if (option->count() > 1)
            throw Error(ErrorKind::usage, std::string("--") + flag, "given twice; expected once");
        return option->results().front();
    }

    double tolerance(const char* flag) const {
        const json value = value_of(Kind::real, text(flag).value_or("0"));
        if (!value.is_number() || !(value.get<double>() >= 0)) fail(flag, "a number of at least 0");
        return value.get<double>();
    }

    [[noreturn]] void fail(const char* flag, const std::string& expected) const {
        throw Error(ErrorKind::usage, std::string("--") + flag + " " + text(flag).value_or(""),
                    "no such value; expected " + expected);
    }

    CLI::App* app_;
    CLI::Option *a_ = nullptr, *b_ = nullptr, *equal_nan_ = nullptr;
    std::map<std::string, CLI::Option*> flags_;
};

}  // namespace

CommandLine parse_command_line(int argc, const char* const* argv) {
    // `attn help causal` is `attn causal --help`, as in git.
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (!words.empty() && words[0] == "help") {
        words.erase(words.begin());
        words.emplace_back("--help");
    }

    CLI::App program{"", "attn"};
    program.set_help_flag("-h,--help", "show this help");
    const std::string version_help = "show version, compiler and kernels";
    CLI::Option* version = program.add_flag("--version", version_help);
    program.allow_extras();
    program.require_subcommand(0, 1);
    program.get_formatter()->column_width(30);
    std::map<Mode, ModeCommand> commands;
    for (const ModeHelp& help : mode_helps) {
        const bool is_named =
            std::find(words.begin(), words.end(), name_of(mode_names, help.mode)) != words.end();
        commands[help.mode] = add_mode(program, help, is_named);
    }

    CompareCommand compare(program);
    const auto help_of_program = [&] {
        return help_text(program, main_examples,
                         "attention from the shell, with PyTorch's numbers") +
               "\nEach command has its own help: attn self --help\n";
    };
    const auto help_of = [&](const ModeHelp& help) {
        const std::string first =
            "attn " + std::string(name_of(mode_names, help.mode)) + ": " + help.summary;
        CLI::App* app = commands[help.mode].app;
        app->description("");
        return help_text(*app, help.examples, first.c_str());
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
        if (compare.parsed()) return message_only(compare.help(), 0);
        for (const ModeHelp& help : mode_helps)
            if (commands[help.mode].app->parsed()) return message_only(help_of(help), 0);
        return message_only(help_of_program(), 0);
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
    for (const auto& [mode, name] : mode_names) names.emplace_back(name);
    names.emplace_back("compare");
    for (const std::string& word : program.remaining())
        throw Error(ErrorKind::usage, word,
                    word.starts_with('-')
                        ? std::string("unknown flag before a command; expected --help or --version")
                        : "unknown command; the nearest is " + nearest(word, names));
    if (version->count() != 0) return message_only(version_text(), 0);
    if (compare.parsed()) {
        CommandLine line;
        line.compare = compare.read();
        return line;
    }
    for (const ModeHelp& help : mode_helps) {
        if (!commands[help.mode].app->parsed()) continue;
        CommandLine line;
        line.request = read_mode(commands[help.mode], help.mode);
        if (waits_for_keyboard(line.request)) return message_only(help_of(help), 2);
        return line;
    }
    return message_only(help_of_program(), 2);
}

}  // namespace attn::cli
