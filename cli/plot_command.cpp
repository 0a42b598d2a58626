// `attn plot`: pictures of a result that is computed already.
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/option_kinds.hpp"
#include "core/error.hpp"

namespace attn::cli {

PlotCommand::PlotCommand(CLI::App& program, bool is_named)
    : Command(program, "plot", "heat maps of a result: on the terminal, or as svg, png or html"),
      own_(app_) {
    const std::string result_help =
        "a result, or an array in any format (FILE:NAME picks one); - or nothing: standard input";
    result_ = app_.add_option("RESULT", result_help)->type_name(" ");
    if (!is_named) return;
    own_.add("output", "FILE", "draw as .svg, .png or .html, by the name (default: the terminal)");
    own_.add("array", "LIST", "arrays to draw (default attention_weights; html: all)");
    own_.add("color-scale", "fixed|row|log|global",
             "what full colour stands for: 1 (of scores: the largest), the largest of the row, or "
             "of all, by equal ratios or equal steps (default fixed)");
}

std::string PlotCommand::help() const {
    app_.description("");
    return help_text(app_,
                     "  attn plot result.json\n"
                     "  attn multihead tokens.csv --heads 2 --emit all | attn plot -o layer.html\n"
                     "  attn plot result.npz --array scores --color-scale row -o scores.svg\n",
                     "attn plot: heat maps of a result: on the terminal, or as svg, png or html");
}

CommandLine PlotCommand::read() const {
    for (const std::string& word : app_.remaining())
        throw Error(ErrorKind::usage, word,
                    word.starts_with('-') ? "unknown flag; attn plot --help lists the known ones"
                                          : "a second result; expected one");
    if (result_->count() == 0 && ::isatty(STDIN_FILENO) != 0) return message_only(help(), 2);
    PlotRequest request;
    request.result = result_->count() == 0 ? "-" : result_->results().front();
    request.output = own_.text("output").value_or("");
    if (own_.has("output") && request.output.empty()) own_.fail("output", "a name of a file");
    if (const auto list = own_.text("array")) request.arrays = split_list(*list);
    if (const auto scale = own_.text("color-scale")) {
        const std::optional<io::ColorScale> known = value_named(io::color_scale_names, *scale);
        if (!known) own_.fail("color-scale", "fixed, row, log or global");
        request.scale = *known;
    }
    CommandLine line;
    line.plot = request;
    return line;
}

}  // namespace attn::cli
