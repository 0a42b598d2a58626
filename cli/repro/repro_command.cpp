// `attn repro`: a mode with its input and flags, and the language of the program.
#include "cli/repro/repro_command.hpp"

#include <span>
#include <string>
#include <vector>

#include "cli/question/question.hpp"
#include "cli/repro/repro.hpp"
#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/input_file.hpp"
#include "io/text/utf8.hpp"

namespace attn::cli {
namespace {

/// The request of MODE [INPUT], or of a request that names its mode. Errors: kind usage.
Request request_of_words(const std::vector<std::string>& words) {
    if (words.empty())
        throw Error(
            ErrorKind::usage, "attn repro",
            "no mode; expected " + listed_modes() + ", then INPUT; or a request with its mode");
    if (mode_named(words[0]) != nullptr) return request_of_mode(words);
    const bool is_request = words[0] == "-" || io::path_exists(io::split_data_path(words[0]).file);
    if (words.size() > 1 || !is_request)
        throw Error(
            ErrorKind::usage, io::shortened(words[0]),
            std::string(words.size() > 1 ? "is not a mode" : "no such file, and not a mode") +
                "; expected " + listed_modes() + ", then INPUT; or a request with its mode");
    Request request;
    request.has_mode = false;
    request.is_question = true;
    request.input = words[0];
    return request;
}

/// Of the mode's command that computes the same, what follows the mode; on one line.
std::string words_after_mode(const Args& args, bool has_mode) {
    const std::vector<std::string> words = args.names();
    return io::printable(words_text(std::span(words).subspan(has_mode ? 1 : 0)) +
                         flags_text(args.flags, {"to", "output"}));
}

int run_repro(const Args& args) {
    const LanguageRow& language = language_rows[args.place("to").value_or(0)];
    Request flags = with_flags(request_of_words(args.names()), args);
    flags.command = words_after_mode(args, flags.has_mode);
    if (flags.has_mode) check_defaults(flags);
    require_input(flags, "attn repro");
    show_notes(write_repro(language, flags));
    return 0;
}

constexpr Option repro_options[] = {
    {.key = "to",
     .field = choice_among<language_names>,
     .help = "NumPy, PyTorch with its own functions, an ONNX model, or C99 (default numpy)"},
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
        "  attn repro request.json --to onnx | python3 -\n"
        "  attn repro sdpa request.json --to c -o bug.c && cc bug.c -lm && ./a.out\n",
    .usage =
        "MODE [INPUT]\n\nMODE is self, causal, multihead, cross, sdpa or linear; INPUT and "
        "the flags are the mode's own, but\nnot those that shape arrays: see attn MODE --help, "
        "and attn help repro. In place of MODE and INPUT,\none request, as a file or - for "
        "standard "
        "input, may name its \"mode\".",
    .takes = in_explain,
    .shown_flags = repro_help,
    .own = repro_options,
    .names = [](const Program&) { return mode_names(); },
    .run = run_repro};

}  // namespace attn::cli
