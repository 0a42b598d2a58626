// `attn inspect`: it computes nothing and has its own flags.
#include <unistd.h>

#include "cli/inspect/inspect.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "io/file/output.hpp"
#include "io/file/screen.hpp"
#include "io/text/json_text.hpp"

namespace attn::cli {
namespace {

int run_inspect(const Args& args) {
    const std::vector<std::string>& words = args.names();
    if (words.size() > 1) throw Error(ErrorKind::usage, words[1], "a second file; expected one");
    if (words.empty())
        refuse_keyboard("attn inspect",
                        "no file; expected one, or arrays piped in, as by attn self --example "
                        "journey | attn inspect");
    const InspectRequest request{words.empty() ? "-" : words[0], args.whole("layer"),
                                 with_flags({}, args).csv};
    const auto form = args.choice("format");
    const bool as_json = form && report_forms[*form].first;
    const nlohmann::ordered_json found = inspect(request);
    io::show(as_json ? io::json_text(found) + "\n"
                     : inspection_page(found, io::screen_columns(STDOUT_FILENO)));
    return 0;
}

constexpr Option inspect_options[] = {
    report_format,
    {.key = "layer",
     .limits = {.expected = "an integer from 0"},
     .argument = "N",
     .help = "layer of a model to look at (default the first)"},
};

}  // namespace

constexpr CommandRow inspect_command{
    .name = "inspect",
    .summary = "the contents of a file: arrays, a request, a result or a model",
    .examples =
        "  attn inspect tokens.npz\n"
        "  attn inspect models/gpt2 --layer 3\n"
        "  attn causal tokens.csv | attn inspect --format json\n",
    .usage =
        "[FILE]\n\nFILE is in any format that attn reads, or the folder of a model; "
        "FILE:NAME picks one array; - or\nnothing is standard input. Of npy, npz, safetensors and "
        "PyTorch only the headers are read.",
    .takes = in_files,
    .shown_flags = csv_help,
    .own = inspect_options,
    .run = run_inspect};

}  // namespace attn::cli
