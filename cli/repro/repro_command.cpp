// `attn repro`: a mode with its input and flags, and the language of the program.
#include "cli/repro/repro_command.hpp"

#include <string>
#include <vector>

#include "cli/question/missing_input.hpp"
#include "cli/question/notes.hpp"
#include "cli/repro/repro.hpp"
#include "cli/request/command_text.hpp"
#include "cli/request/options.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

/// Errors: kind usage if the words do not begin with a mode.
void check_mode(const std::vector<std::string>& words) {
    if (words.empty())
        throw Error(ErrorKind::usage, "attn repro",
                    "no mode; expected " + listed_modes() + ", then INPUT");
    if (mode_named(words[0]) == nullptr)
        throw Error(ErrorKind::usage, io::shortened(words[0]),
                    "is not a mode; expected " + listed_modes() + ", then INPUT");
}

/// The mode's command that computes the same, on one line.
std::string command_of(const Args& args) {
    return io::printable("attn" + words_text(args.names()) +
                         flags_text(args.flags, {"to", "output"}));
}

int run_repro(const Args& args) {
    const LanguageRow& language = language_rows[args.place("to").value_or(0)];
    check_mode(args.names());
    Request flags = with_flags(request_of_mode(args.names()), args);
    flags.command = command_of(args);
    check_defaults(flags);
    require_input(flags, "attn repro");
    show_notes(write_repro(language, flags));
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
    .names = [](const Program&) { return mode_names(); },
    .run = run_repro};

}  // namespace attn::cli
