// `attn explain`: a mode, its input and its flags, and a few flags of its own.
#include "cli/explain/explain_command.hpp"

#include <string>
#include <vector>

#include "cli/explain/explain.hpp"
#include "cli/request/apply.hpp"
#include "cli/request/missing_input.hpp"
#include "cli/request/notes.hpp"
#include "core/base/error.hpp"
#include "io/file/source.hpp"

namespace attn::cli {
namespace {

Mode mode_of(const std::string& word) {
    if (const ModeRow* row = mode_named(word)) return row->mode;
    throw Error(ErrorKind::usage, word.empty() ? "attn explain" : io::shortened(word),
                std::string(word.empty() ? "no mode" : "no mode of attn") + "; expected " +
                    listed_modes() + ", then INPUT");
}

/// The mode, then the input.
void take_words(Request& request, const Args& args) {
    const std::vector<std::string>& words = args.names();
    request.settings.mode = mode_of(words.empty() ? "" : words[0]);
    if (words.size() > 2) throw Error(ErrorKind::usage, words[2], "a second input; expected one");
    if (words.size() < 2) return;
    if (words[1].empty())
        throw Error(ErrorKind::usage, "INPUT", "an empty name; expected a path or -");
    request.input = words[1];
}

/// An index, or else a label, which has no meaning before the input is read.
void take_query(Request& request, const Args& args) {
    const Given* const given = args.find("token");
    if (given == nullptr) return;
    request.places["token"] = place_of(*given);
    if (given->text.find_first_not_of("0123456789") == std::string::npos)
        request.settings.token = args.whole("token");
    else
        request.token_label = given->text;
}

int run_explain(const Args& args, Request& request) {
    Request asked;
    take_words(asked, args);
    apply_flags(asked, args);
    take_query(asked, args);
    check_defaults(asked);
    ExplainRequest walk;
    if (const auto format = args.place("format")) walk.format = page_format_names[*format].first;
    walk.head = args.whole("head");
    walk.batch = args.whole("batch");
    require_input(asked, "attn explain");
    request = std::move(asked);
    explain(walk, request);
    show_notes(request);
    return 0;
}

constexpr Option explain_options[] = {
    {.key = "token",
     .limits = {.expected = "a whole number from 0, or the label of a token"},
     .argument = "N|LABEL",
     .help = "the query to walk through, from 0 or by its label (default one in the middle)",
     .letter = 't'},
    {.key = "head",
     .limits = {.expected = "a whole number from 0"},
     .argument = "N",
     .help = "one head, from 0 (default all where there are at most 4, else 0)"},
    {.key = "batch",
     .limits = {.expected = "a whole number from 0"},
     .argument = "N",
     .help = "the batch entry, from 0 (default 0)"},
    {.key = "format",
     .field = choice_among<page_format_names>,
     .help = "how it is written (default text, or by -o's suffix)",
     .letter = 'f'},
};

constexpr OwnHelp explain_help[] = {
    {"precision", "digits after the point (default 4)"},
    {"output", "write there, whole or not at all (default -, standard output)"}};

std::vector<std::string_view> mode_names(const Program&) {
    std::vector<std::string_view> names;
    names.reserve(mode_rows.size());
    for (const ModeRow& row : mode_rows) names.push_back(row.name);
    return names;
}

}  // namespace

constexpr CommandRow explain_command{
    .name = "explain",
    .summary = "one query of a question, step by step, in words and numbers",
    .examples =
        "  attn explain self --example journey --d-out 2 --seed 123 --token 1\n"
        "  attn explain multihead tokens.csv --heads 2 --head 1 -o walk.md\n"
        "  attn explain sdpa --query q.json --key k.json --value v.json --causal\n",
    .usage =
        "MODE [INPUT]\n\nMODE is self, causal, multihead, cross or sdpa; INPUT and every flag are "
        "the mode's own: see\nattn MODE --help. A result as INPUT is the input of a next layer, as "
        "it is for the mode. Flags\nthat shape arrays have no place here: --emit, --format of "
        "arrays, --nonfinite, --pretty,\n--average-heads, --save-weights; as keys of a request "
        "they are passed over.",
    .takes = in_explain,
    .told = explain_help,
    .own = explain_options,
    .names = mode_names,
    .run = run_explain};

}  // namespace attn::cli
