// `attn explain`: a mode with its input and flags, and a few flags of its own.
#include "cli/explain/explain_command.hpp"

#include <optional>
#include <string>
#include <vector>

#include "cli/explain/explain.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {
namespace {

/// The path of the result to explain; empty if a mode comes first.
std::optional<std::string> result_in(const std::vector<std::string>& words) {
    if (words.empty())
        refuse_keyboard("attn explain", "no mode and no result; expected " + listed_modes() +
                                            ", then INPUT; or a result, as in attn causal "
                                            "--example journey --emit all | attn explain");
    if (words.empty()) return "-";
    if (words[0].empty())
        throw Error(ErrorKind::usage, "attn explain",
                    "an empty name; expected " + listed_modes() + ", then INPUT; or a result");
    if (mode_named(words[0]) != nullptr) return std::nullopt;
    return words[0];
}

/// Refuses modes' flags for a result, except those about the page.
void check_result_flags(const Args& args, const std::string& result) {
    for (const FlagValue& given : args.flags) {
        const std::string_view key = given.option->key;
        const bool is_own = find_option(key) != given.option;
        const bool is_of_page =
            key == "precision" || key == "output" || key == "token" || key == "layer";
        const bool is_mode_setting = !is_own && !is_of_page && given.origin != Origin::environment;
        if (is_mode_setting && args.names().empty())
            throw Error(ErrorKind::usage, location_of(given),
                        "requires a mode; expected attn explain MODE, one of " + listed_modes());
        if (is_mode_setting)
            throw Error(ErrorKind::usage, location_of(given),
                        "is a setting of a mode, and " + io::shortened(result) +
                            " is taken for a result, whose settings are its own; expected a mode "
                            "before INPUT: " +
                            listed_modes());
    }
    if (args.names().size() > 1)
        throw Error(
            ErrorKind::usage, io::shortened(args.names()[0]),
            "is not a mode; expected " + listed_modes() + ", then INPUT; or one result alone");
    if (result != "-" && !io::path_exists(io::split_data_path(result).file))
        throw Error(ErrorKind::usage, io::shortened(result),
                    "no such file, and not a mode; expected a result, or a mode and INPUT: " +
                        listed_modes());
}

int run_explain(const Args& args) {
    ExplainRequest request;
    if (const auto format = args.place("format")) request.format = page_format_names[*format].first;
    request.head = args.whole("head");
    request.batch = args.whole("batch");
    request.full = args.has("full");
    const std::optional<std::string> result = result_in(args.names());
    if (result) {
        check_result_flags(args, *result);
        return explain_result(request, *result, with_flags({}, args)), 0;
    }
    const Request flags = with_flags(request_of_mode(args.names()), args);
    check_defaults(flags);
    require_input(flags, "attn explain");
    show_notes(explain(request, flags));
    return 0;
}

constexpr Option explain_options[] = {
    {.key = "head",
     .limits = {.expected = "an integer from 0"},
     .argument = "N",
     .help = "one head, from 0 (default all where there are at most 4, else 0)"},
    {.key = "batch",
     .limits = {.expected = "an integer from 0"},
     .argument = "N",
     .help = "the batch entry, from 0 (default 0)"},
    {.key = "full",
     .field = no_value,
     .help = "every key, number and term, also where there are many"},
    {.key = "format",
     .field = choice_among<page_format_names>,
     .help = "how it is written (default text, or by -o's suffix)",
     .letter = 'f'},
};

constexpr HelpOverride explain_help[] = {
    {"layer", "the layer of a model's result or of --weights"},
    {"token", "the query to explain, from 0 or by its label (default one in the middle)"},
    {"precision", "digits after the point (default 4)"},
    {"output", "write there, whole or not at all (default -, standard output)"}};

}  // namespace

constexpr CommandRow explain_command{
    .name = "explain",
    .summary = "one query of a question, step by step, in words and numbers",
    .examples =
        "  attn explain self --example journey --d-out 2 --seed 123 --token 1\n"
        "  attn explain multihead tokens.csv --heads 2 --head 1 -o explained.md\n"
        "  attn causal tokens.csv --emit all | attn explain --token 3 -o explained.html\n"
        "  attn explain sdpa --query q.json --key k.json --value v.json --causal\n",
    .usage =
        "MODE [INPUT]\n\nMODE is self, causal, multihead, cross, sdpa or linear; INPUT and every "
        "flag are "
        "the mode's own: see\nattn MODE --help. A result as INPUT is the input of a next layer, as "
        "it is for the mode; alone,\nwithout a MODE, it is explained as it is. Flags that "
        "shape arrays are not accepted: --emit,\n--format of arrays, --nonfinite, --pretty, "
        "--average-heads, --save-weights; as keys of a request\nthey are ignored.",
    .takes = in_explain,
    .shown_flags = explain_help,
    .own = explain_options,
    .names = [](const Program&) { return mode_names(); },
    .run = run_explain};

}  // namespace attn::cli
