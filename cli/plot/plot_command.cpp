// `attn plot`: pictures of a result that is computed already.
#include <unistd.h>

#include "cli/args/commands.hpp"
#include "cli/request/option_values.hpp"
#include "core/base/error.hpp"

namespace attn::cli {
namespace {

constexpr const char* summary = "heat maps of a result: on the terminal, or as svg, png or html";

}  // namespace

PlotCommand::PlotCommand(CLI::App& program, bool is_named)
    : Command(program, "plot", summary), own_(app_) {
    if (!is_named) return;
    own_.add("output", "FILE", "draw as .svg, .png or .html, by the name (default: the terminal)");
    own_.add("array", "LIST", "arrays to draw, or all (default attention_weights; html: all)");
    own_.add("color-scale", "fixed|row|log|global", io::color_scale_help);
}

std::string PlotCommand::help() const {
    app_.description("");
    return help_text(
        app_,
        "  attn plot result.json\n"
        "  attn multihead tokens.csv --heads 2 --emit all | attn plot -o layer.html\n"
        "  attn plot result.npz --array scores --color-scale row -o scores.svg\n",
        std::string("attn plot: ") + summary,
        "[RESULT]\n\nRESULT is a result of attn, or an array in any format that it reads; "
        "FILE:NAME "
        "picks one array; - or\nnothing is standard input. Terminals: NO_COLOR, CLICOLOR_FORCE, "
        "COLORTERM, TERM and COLUMNS count.");
}

CommandLine PlotCommand::read() const {
    const std::vector<std::string> words = words_of(app_, {&own_.by_name()});
    if (words.size() > 1) throw Error(ErrorKind::usage, words[1], "a second result; expected one");
    if (words.empty() && ::isatty(STDIN_FILENO) != 0) return message_only(help(), 2);
    PlotRequest request;
    request.result = words.empty() ? "-" : words[0];
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
