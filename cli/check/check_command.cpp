// `attn check`: a mode with its input and flags, or a request, and other programs' arrays.
#include "cli/check/check_command.hpp"

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/check/check.hpp"
#include "cli/question/missing_input.hpp"
#include "cli/question/notes.hpp"
#include "cli/request/options.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/text/lines.hpp"

namespace attn::cli {
namespace {

constexpr int found_wrong = 1;

enum class CheckForm { text, json };
constexpr Names<CheckForm, 2> check_forms{{{CheckForm::text, "text"}, {CheckForm::json, "json"}}};

constexpr Names<Precision, 4> precision_names{{{Precision::float64, "float64"},
                                               {Precision::float32, "float32"},
                                               {Precision::float16, "float16"},
                                               {Precision::bfloat16, "bfloat16"}}};

/// The mode that a request names, and the request as INPUT. Errors: kind usage if it names none.
std::vector<std::string> words_of_request(const std::vector<std::string>& words) {
    const std::string& path = words[0];
    const std::string expected = "expected " + listed_modes() + ", then INPUT; or a request";
    if (words.size() > 1 || (path != "-" && !io::path_exists(io::split_data_path(path).file)))
        throw Error(ErrorKind::usage, io::shortened(path), "is not a mode; " + expected);
    if (path == "-")
        throw Error(ErrorKind::usage, "-",
                    "a request from standard input requires its mode; expected attn check MODE -");
    const io::InputFile file = io::open_input_file(path);
    const io::JsonMember* const member =
        file.holds_object() ? file.document->find("mode") : nullptr;
    if (member == nullptr)
        throw Error(ErrorKind::usage, file.place,
                    "no request that names its mode; expected \"mode\" in it, or attn check MODE " +
                        io::shortened(path));
    const nlohmann::json mode = file.document->read_value(*member);
    const std::string name = mode.is_string() ? mode.get<std::string>() : "";
    if (mode_named(name) == nullptr)
        throw Error(ErrorKind::usage, file.document->place(*member),
                    "unknown mode " + io::shortened(mode.dump()) + "; expected " + listed_modes());
    return {name, path};
}

std::vector<std::string> mode_and_input(const std::vector<std::string>& words) {
    if (words.empty())
        throw Error(ErrorKind::usage, "attn check",
                    "no mode and no request; expected " + listed_modes() + ", then INPUT");
    return mode_named(words[0]) != nullptr ? words : words_of_request(words);
}

std::optional<CheckTolerance> tolerance_of(const Args& args) {
    if (!args.has("atol") && !args.has("rtol")) return std::nullopt;
    return CheckTolerance{args.real("atol").value_or(0), args.real("rtol").value_or(0)};
}

int run_check(const Args& args) {
    CheckRequest request;
    const std::vector<std::string> words = mode_and_input(args.names());
    const std::string against = args.text("against").value_or("");
    if (against.empty())
        throw Error(ErrorKind::usage, "attn check",
                    "nothing to check; expected --against FILE, with another program's arrays");
    for (const std::string_view path : io::lines_of(against)) request.against.emplace_back(path);
    request.names = args.text("names").value_or("");
    if (const auto type = args.place("type")) request.type = precision_names[*type].first;
    request.tolerance = tolerance_of(args);
    if (const auto form = args.place("format"))
        request.json = check_forms[*form].first == CheckForm::json;
    request.flags = with_flags(request_of_mode(words), args);
    check_defaults(request.flags);
    require_input(request.flags, "attn check");
    std::vector<std::string> notes;
    const bool is_right = check(request, notes);
    show_notes(notes);
    return is_right ? 0 : found_wrong;
}

constexpr Limits from_zero{.expected = "a number of at least 0"};
constexpr Option check_options[] = {
    {.key = "against",
     .argument = "FILE",
     .help = "another program's arrays, as npz, safetensors, npy, json or csv; given again: "
             "another program",
     .repeats = true},
    {.key = "names",
     .argument = "THEIRS=OURS,...",
     .help = "attn's names of arrays that the program calls otherwise"},
    {.key = "type",
     .field = choice_among<precision_names>,
     .help = "type that the program computed in (default: that of its numbers)"},
    {.key = "atol",
     .limits = from_zero,
     .argument = "X",
     .help = "absolute error that is right, in place of the bound of rounding errors"},
    {.key = "rtol",
     .limits = from_zero,
     .argument = "X",
     .help = "the same relative to the truth, added to it"},
    {.key = "format",
     .field = choice_among<check_forms>,
     .help = "for people or for programs (default text)",
     .letter = 'f'},
};

constexpr HelpOverride check_help[] = {
    {"dtype", "type that parameters are drawn in and inputs are rounded to (default float32)"},
    {"rows", "the query rows that the arrays hold, A to B - 1, from 0 (default all)"},
    {"token", "the only query row that the arrays hold, from 0 or by its label"},
    {"head", "the heads that arrays of each head hold, from 0 (default all)"},
    {"average_heads", "attention_weights hold the mean over the heads"},
    {"output", "write the report there, whole or not at all (default -, standard output)"}};

}  // namespace

constexpr CommandRow check_command{
    .name = "check",
    .summary = "whether another program's attention is right",
    .note = "; exit code 1 where it is wrong",
    .examples =
        "  attn check sdpa request.json --against theirs.npz\n"
        "  attn check causal tokens.csv --d-out 2 --seed 123 --against theirs.npy --type float16\n"
        "  attn check request.json --against a.npz --against b.npz --names Y=context_vectors\n",
    .usage =
        "MODE [INPUT] --against FILE\n\nMODE is self, causal, multihead, cross, sdpa or linear; "
        "INPUT and the flags are the mode's own, but\nnot those that shape arrays: see attn MODE "
        "--help, and attn help check. A request that names its mode\nneeds no MODE.",
    .takes = in_explain | in_check,
    .shown_flags = check_help,
    .own = check_options,
    .names = [](const Program&) { return mode_names(); },
    .run = run_check};

}  // namespace attn::cli
