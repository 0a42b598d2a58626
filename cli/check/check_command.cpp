// `attn check`: a mode with its input and flags, or a request, and other programs' arrays.
#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/args/args.hpp"
#include "cli/check/check.hpp"
#include "cli/output/output.hpp"
#include "cli/question/layer_source.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/text/text.hpp"

namespace attn::cli {
namespace {

constexpr std::array<NamedFormat, 2> check_formats{
    {{"text", {".txt"}}, {"json", {".json", ".ndjson", ".jsonl"}}}};
constexpr auto check_format_names = names_of(check_formats);

/// By the flag, or by the name of the output; otherwise text, or of many requests JSON. Errors:
/// kind usage for a name of another format.
bool is_json(const Args& args, bool of_requests) {
    const auto output = std::find_if(
        args.flags.begin(), args.flags.end(),
        [](const FlagValue& flag) { return std::string_view(flag.option->key) == "output"; });
    const std::string path = output == args.flags.end() ? "-" : output->text;
    const OutputName name{path, "--output " + path, "a check is written as text or as JSON",
                          ", or --format with it"};
    const auto index = args.choice("format");
    const NamedFormat* const format =
        format_of_flag(check_formats, index ? &check_formats[*index] : nullptr, name);
    return format == nullptr ? of_requests : format == &check_formats[1];
}

/// A type of computation, or of the words that numbers were rounded to.
void read_type(const FlagValue& flag, CheckRequest& request) {
    const std::string& text = flag.text;
    const auto* const named =
        find_row(judged_types, &std::pair<NumberType, std::string_view>::second, text);
    if (named != nullptr) {
        request.type = named->first;
        return;
    }
    StoredType words;
    const std::string problem = io::parse_stored_type(text, words);
    const bool is_other =
        text.find(':') == std::string::npos && !(problem.empty() && words.is_float8());
    std::vector<std::string_view> names;
    for (const auto& [type, name] : judged_types) names.push_back(name);
    if (is_other || !problem.empty())
        throw Error(ErrorKind::usage, location_of(flag),
                    is_other ? "not a type of numbers; expected " + listed(names) +
                                   ", or words as fixed:16,12 or int8:0.05"
                             : problem);
    request.words = words;
}

CheckRequest check_of(const Args& args) {
    CheckRequest request;
    const std::string against = args.text("against").value_or("");
    if (against.empty())
        throw Error(ErrorKind::usage, "attn check",
                    "nothing to check; expected --against FILE, with another program's arrays");
    for (const std::string_view path : io::split_text(against, '\0'))
        request.against.emplace_back(path);
    request.names = args.text("names").value_or("");
    if (const FlagValue* const type = args.find("type")) read_type(*type, request);
    if (args.has("atol") || args.has("rtol"))
        request.limits.tolerance = {args.real("atol").value_or(0), args.real("rtol").value_or(0)};
    request.limits.units = args.whole("lsb");
    request.exact = args.has("exact");
    for (const char* key : {"atol", "rtol", "lsb"})
        if (request.exact && args.has(key))
            throw Error(ErrorKind::usage, "--exact",
                        std::string("conflicts with --") + key + "; expected one of them");
    if (request.exact) request.limits.tolerance = CheckTolerance{};
    request.junit = args.text("junit").value_or("");
    if (args.has("junit") && request.junit.empty()) args.fail("junit");
    request.search = args.has("search");
    return request;
}

/// Requests of several lines, whose flags are defaults.
int run_check_records(const Args& args, CheckRequest request) {
    request.json = is_json(args, true);
    if (!request.json)
        throw Error(ErrorKind::usage, args.has("format") ? "--format text" : "--output",
                    "the verdicts on many requests are lines of JSON; expected json");
    request.flags.of_batch = true;
    request.flags = with_flags(std::move(request.flags), args);
    return check_records(*request.question, request) ? 0 : exit_differs;
}

int run_check(const Args& args) {
    Request asked =
        request_of_words(args.names(), {"attn check", "a request", "no mode and no request"});
    CheckRequest request = check_of(args);
    request.flags = std::move(asked);
    // Of --corners, which are those of the type that numbers are stored in.
    request.flags.store = request.words;
    if (request.type && (row_of(*request.type).uses & use::stores) != 0)
        request.flags.store = StoredType{.kind = *request.type};
    const bool is_request = !request.flags.has_mode;
    if (is_request) {
        request.question = io::open_input_file(request.flags.input, nullptr,
                                               {.expected = "a request, or one on each line"});
        if (holds_requests(*request.question)) return run_check_records(args, std::move(request));
    }
    request.json = is_json(args, false);
    request.flags = with_flags(std::move(request.flags), args);
    if (!is_request) check_defaults(request.flags);
    require_input(request.flags, "attn check");
    std::vector<std::string> notes;
    const bool is_right = check(std::move(request), notes);
    show_notes(notes);
    return is_right ? 0 : exit_differs;
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
     .argument = "TYPE",
     .help = "type that the program computed in: float64, float32, tf32, float16 or bfloat16; or "
             "the words that its numbers were rounded to: fixed:W,F or int8:S, as in --store "
             "(default: by the file)"},
    {.key = "atol",
     .limits = from_zero,
     .argument = "X",
     .help = "absolute error that is right, in place of the bound of rounding errors"},
    {.key = "rtol",
     .limits = from_zero,
     .argument = "X",
     .help = "the same relative to the truth, added to it"},
    {.key = "lsb",
     .limits = {0, 1e18, "an integer from 0"},
     .argument = "N",
     .help = "units in the last place by which words may differ, beyond the bound (default 0)"},
    {.key = "exact",
     .field = no_value,
     .help = "words must be those of the numbers in float64; counts the others (default off)"},
    {.key = "junit",
     .limits = {.expected = "a name of a file"},
     .argument = "FILE",
     .help = "also write the verdicts as JUnit's XML, a test case for each program or record "
             "(default none)"},
    {.key = "search",
     .field = no_value,
     .help = "where it is wrong, find the settings that reproduce it"},
    {.key = "format",
     .field = choice_among<check_format_names>,
     .help = "for people or for programs (default text, or by -o's suffix)",
     .letter = 'f'},
};

constexpr HelpOverride common_check_flags[] = {
    {"against", "another program's arrays; given again: another program"},
    {"names", "attn's names of arrays that it calls otherwise"},
    {"type", "type that it computed in, or words as fixed:16,12"},
    {"atol", "absolute error that is right (default: a bound)"},
    {"lsb", "units in the last place by which words may differ"},
    {"exact", "words must be those of float64; counts the others"},
    {"junit", "also write the verdicts as JUnit's XML"},
    {"search", "find the settings that reproduce what is wrong"},
    {"format", "for people or for programs (default text)"},
    {"output", "write the report there (default standard output)"},
    {"rows", "query rows that its arrays hold, A to B - 1"},
    {"average_heads", "attention_weights are the mean over the heads"},
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
    .summary = "whether a port's attention is right",
    .note = "; exit code 1 where it is wrong",
    .examples =
        "  attn check sdpa request.json --against theirs.npz\n"
        "  attn check causal tokens.csv --d-out 2 --seed 123 --against theirs.npy --search\n"
        "  attn check request.json --against a.npz --against b.npz --names Y=context_vectors\n",
    .usage =
        "MODE [INPUT]\n\n--against FILE is required. MODE is self, causal, multihead, cross, sdpa "
        "or linear; "
        "INPUT and the flags are the mode's own, but\nnot those that shape arrays: see attn MODE "
        "--help, and attn help check. A request that names its mode,\nor a result of --emit all, "
        "as "
        "a file or - for standard input, needs no MODE.",
    .common_flags = common_check_flags,
    .takes = in_explain | in_check,
    .shown_flags = check_help,
    .own = check_options,
    .names = [](const Program&) { return mode_names(); },
    .run = run_check};

}  // namespace attn::cli
