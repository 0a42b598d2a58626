// `attn compare`: it computes nothing and has its own flags.

#include "cli/args/args.hpp"
#include "cli/compare/compare.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"

namespace attn::cli {
namespace {

/// tf32 is a way to multiply numbers of float32.
constexpr auto ulp_types =
    names_of(NumberType::float32, NumberType::float64, NumberType::float16, NumberType::bfloat16);

int run_compare(const Args& args) {
    const std::vector<std::string>& words = args.names();
    if (words.size() > 2)
        throw Error(ErrorKind::usage, words[2], "unexpected third input; expected two, A and B");
    if (words.size() < 2)
        throw Error(ErrorKind::usage, "attn compare", "requires two inputs, A and B");
    CompareRequest request;
    request.a = words[0];
    request.b = words[1];
    request.tolerance.atol = args.real("atol").value_or(0);
    request.tolerance.rtol = args.real("rtol").value_or(0);
    request.tolerance.ulp = args.whole("ulp");
    request.tolerance.equal_nan = args.has("equal_nan");
    request.common = args.has("common");
    if (const auto dtype = args.choice("dtype")) request.dtype = ulp_types[*dtype].first;
    if (const auto form = args.choice("format")) request.json = report_forms[*form].first;
    request.csv = with_flags({}, args).csv;
    std::vector<std::string> notes;
    const bool are_equal = compare(request, notes);
    show_notes(notes);
    return are_equal ? 0 : exit_differs;
}

constexpr Limits tolerated{.expected = "a number of at least 0"};
constexpr Option compare_options[] = {
    {.key = "atol",
     .limits = tolerated,
     .argument = "X",
     .help = "absolute difference that counts as equal (default 0)"},
    {.key = "rtol",
     .limits = tolerated,
     .argument = "X",
     .help = "the same relative to B, added to it (default 0)"},
    {.key = "ulp",
     .limits = {.expected = "an integer from 0"},
     .argument = "N",
     .help = "equal up to N units in the last place (default none)"},
    {.key = "dtype",
     .field = choice_among<ulp_types>,
     .limits = {.expected = "float32|float64|float16|bfloat16"},
     .help = "type whose units count (default the arrays')"},
    report_format,
    {.key = "common", .field = no_value, .help = "compare only the arrays that both have"},
    {.key = "equal_nan", .field = no_value, .help = "NaN equals NaN (default off)"},
};

}  // namespace

constexpr CommandRow compare_command{
    .name = "compare",
    .summary = "how far two results differ, array by array",
    .note = "; exit code 1 where they differ",
    .examples = "  attn causal tokens.csv | attn compare - result.json --format json\n",
    .usage =
        "A B\n\nA and B are results of attn, or arrays in any format that it reads; "
        "FILE:NAME picks one array;\n- is standard input.",
    .takes = in_files,
    .shown_flags = csv_help,
    .own = compare_options,
    .run = run_compare};

}  // namespace attn::cli
