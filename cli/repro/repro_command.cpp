// `attn repro`: a mode with its input and flags, and the language of the program.
#include "cli/repro/repro_command.hpp"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "cli/question/missing_input.hpp"
#include "cli/question/notes.hpp"
#include "cli/repro/repro.hpp"
#include "cli/request/options.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

/// The words are a mode and an optional input.
Request repro_request(const std::vector<std::string>& words) {
    if (words.empty())
        throw Error(ErrorKind::usage, "attn repro",
                    "no mode; expected " + listed_modes() + ", then INPUT");
    const ModeRow* const mode = mode_named(words[0]);
    if (mode == nullptr)
        throw Error(ErrorKind::usage, io::shortened(words[0]),
                    "is not a mode; expected " + listed_modes() + ", then INPUT");
    if (words.size() > 2)
        throw Error(ErrorKind::usage, words[2], "unexpected second input; expected only one");
    Request request;
    request.settings.mode = mode->mode;
    if (words.size() < 2) return request;
    if (words[1].empty())
        throw Error(ErrorKind::usage, "INPUT", "an empty name; expected a path or -");
    request.input = words[1];
    return request;
}

/// A word as a shell reads it, on one line: characters that are not shown are escaped.
std::string quoted_word(const std::string& word) {
    const auto is_plain = [](unsigned char c) {
        return std::isalnum(c) != 0 ||
               std::string_view("-_./:=,+@").find(static_cast<char>(c)) != std::string_view::npos;
    };
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
    std::string text = "'";
    for (const char c : word) {
        if (c == '\'')
            text += "'\\''";
        else
            text += c;
    }
    return io::printable(text) + "'";
}

/// The mode's command that computes the same.
std::string command_of(const Args& args) {
    std::string command = "attn";
    for (const std::string& word : args.names()) command += " " + quoted_word(word);
    for (const FlagValue& flag : args.flags) {
        const std::string_view key = flag.option->key;
        if (key == "to" || key == "output") continue;
        if (is_boolean(*flag.option)) {
            command += (flag.text == "true" ? " --" : " --no-") + flag_name(*flag.option);
            continue;
        }
        command += " " + flag_of(*flag.option);
        if (has_value(*flag.option)) command += " " + quoted_word(flag.text);
    }
    return command;
}

int run_repro(const Args& args) {
    const LanguageRow& language = language_rows[args.place("to").value_or(0)];
    const Request flags = with_flags(repro_request(args.names()), args);
    check_defaults(flags);
    require_input(flags, "attn repro");
    show_notes(write_repro(language, command_of(args), flags));
    return 0;
}

constexpr Option repro_options[] = {
    {.key = "to",
     .field = choice_among<language_names>,
     .help = "NumPy, PyTorch with its own functions, or C99 (default numpy)"},
};

constexpr HelpOverride repro_help[] = {
    {"dtype", "type of the program's numbers (default float32)"},
    {"output", "write there, whole or not at all (default -, standard output)"}};

std::vector<std::string_view> names_of_modes(const Program&) {
    std::vector<std::string_view> names;
    names.reserve(mode_rows.size());
    for (const ModeRow& row : mode_rows) names.push_back(row.name);
    return names;
}

}  // namespace

constexpr CommandRow repro_command{
    .name = "repro",
    .summary = "a short program that computes the same and checks it",
    .examples =
        "  attn repro causal --example journey --d-out 2 --seed 123 | python3 -\n"
        "  attn repro multihead tokens.csv --heads 2 --to torch -o bug.py\n"
        "  attn repro sdpa request.json --to c -o bug.c && cc bug.c -lm && ./a.out\n",
    .usage =
        "MODE [INPUT]\n\nMODE is self, causal, multihead, cross, sdpa or linear; INPUT and "
        "the flags are the mode's own, but\nnot those that shape arrays: see attn MODE --help, "
        "and attn help repro.",
    .takes = in_explain,
    .shown_flags = repro_help,
    .own = repro_options,
    .names = names_of_modes,
    .run = run_repro};

}  // namespace attn::cli
