#include "cli/plot/plot.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "cli/args/args.hpp"
#include "cli/output/output.hpp"
#include "cli/question/question.hpp"
#include "cli/request/field.hpp"
#include "cli/request/request_builder.hpp"
#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/file/output.hpp"
#include "io/file/source.hpp"
#include "io/plot/picture.hpp"
#include "io/text/text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// States how a file that does not describe its array is interpreted.
std::string note_of_plain(const Drawing& drawing, const NamedArray& array) {
    std::string file = drawing.location == "<stdin>" ? "-" : drawing.location;
    if (drawing.report.arrays.size() > 1) file += ":" + array.name;
    constexpr std::size_t largest = 1000;  // attention is quadratic in them
    const bool is_quick = array.axes.size() == 2 && io::shape_of(array)[0] <= largest;
    return drawing.location + ": a plain array, drawn with the axes " + io::axes_text(array) +
           "; --axes LIST names others" +
           (is_quick ? ", attn self " + file + " --heatmap draws the attention of its rows" : "");
}

void check_axes(const io::Report& report, const PlotRequest& request) {
    const AxisNames& axes = request.axes;
    // Several results have an axis of layers before the given axes.
    const auto has_them = [&](const NamedArray& array) {
        return array.axes.size() >= axes.size() &&
               std::equal(axes.rbegin(), axes.rend(), array.axes.rbegin());
    };
    if (axes.empty() || std::ranges::any_of(report.arrays, has_them)) return;
    throw Error(ErrorKind::usage, "--axes " + request.axes_list, axes.size(),
                " axes; expected as many as an array has, and ", report.arrays.front().name,
                " has ", io::shape_of(report.arrays.front()).size());
}

/// Given labels must fit one of the last axes of a drawn array.
void check_words(const std::vector<const NamedArray*>& drawn, const Drawing& drawing,
                 const PlotRequest& request) {
    const auto check = [&](const char* flag, const std::vector<std::string>& words,
                           std::size_t from_end, const char* name) {
        const auto has_words = [&](const NamedArray* array) {
            const std::vector<std::size_t> shape = io::shape_of(*array);
            const std::size_t axis = shape.size() - from_end;
            return !io::labels_of(drawing.report, *array, axis).empty();
        };
        if (words.empty() || std::ranges::any_of(drawn, has_words)) return;
        const NamedArray& first = *drawn.front();
        throw Error(ErrorKind::input, flag, words.size(), (words.size() == 1 ? " word" : " words"),
                    " for ", first.name, " ", shape_text(io::shape_of(first)),
                    "; expected one for each ", name, ", or --axes that names queries and keys");
    };
    check("--tokens", request.tokens, 2, "row");
    check("--context-tokens", request.context_tokens, 1, "column");
}

/// The names of the arrays that are not in `left`: "keys, values".
std::string names_without(const std::vector<const NamedArray*>& arrays,
                          const std::vector<const NamedArray*>& left) {
    std::vector<const NamedArray*> others = arrays;
    std::erase_if(others, [&](const NamedArray* array) {
        return std::ranges::find(left, array) != left.end();
    });
    return io::comma_list(others, &NamedArray::name);
}

}  // namespace

void plot(const PlotRequest& request) {
    const bool to_file = !request.output.empty();
    const io::PictureFormat* format =
        to_file ? &picture_format(request.output, "--output " + request.output) : nullptr;
    const auto choose = [&](const Drawing& drawing) {
        const io::Report& report = drawing.report;
        check_axes(report, request);
        std::vector<std::string> names = request.arrays;
        if (drawing.is_selected || (names.empty() && !drawing.named.empty()))
            names = {drawing.named};
        return arrays_to_draw(report, names, to_file && format->holds_all,
                              request.arrays.empty() ? drawing.location : "--array");
    };
    ThreadPool workers;
    Drawing drawing = read_drawing(request.results, request, choose, workers);
    io::Report& report = drawing.report;
    if (!drawing.lacks_weights.empty() && request.arrays.empty() && drawing.named.empty() &&
        (!to_file || !format->holds_all))
        throw Error(ErrorKind::usage, "--layer", drawing.lacks_weights);
    auto arrays = choose(drawing);
    check_words(arrays, drawing, request);
    if (drawing.is_plain && request.axes.empty())
        drawing.notes.push_back(note_of_plain(drawing, *arrays.front()));
    if (!request.heads.empty()) {
        const auto left = keep_heads(report, arrays, request.heads);
        if (const std::string names = names_without(arrays, left); !names.empty())
            drawing.notes.push_back("--head: " + names + " left out, of another number of heads");
        arrays = left;
    }
    report.heading = request.title;
    if (to_file)
        io::write_file(request.output, [&](io::Output& to) {
            write_plot(to, report, arrays, request.scale, *format);
        });
    else
        io::show(terminal_text(report, arrays, request.scale, STDOUT_FILENO));
    show_notes(drawing.notes);
}

namespace {

std::vector<std::string> words_in(const Args& args, std::string_view key) {
    const auto text = args.text(key);
    if (!text) return {};
    std::vector<std::string> words = word_list(*text);
    if (words.empty()) args.fail(key);
    return words;
}

int run_plot(const Args& args) {
    const std::vector<std::string>& words = args.names();
    if (words.empty())
        refuse_keyboard("attn plot",
                        "no result; expected a file, or a result piped in, as by attn "
                        "self --example journey | attn plot");
    PlotRequest request;
    request.results = words;
    if (words.empty()) request.results = {"-"};
    for (const std::string& word : request.results)
        if (format_of_suffix(io::picture_formats, word) != nullptr)
            throw Error(ErrorKind::usage, io::shortened(word),
                        "is the name of a picture; expected a result, and -o ", io::shortened(word),
                        " for the picture");
    io::require_one_standard_input(words);
    request.output = args.text("output").value_or("");
    if (args.has("output") && request.output.empty()) args.fail("output");
    if (const auto list = args.text("array")) request.arrays = split_list(*list);
    if (const auto text = args.text("color_scale")) {
        const auto scale = io::color_scale_of(*text);
        if (!scale) args.fail("color_scale");
        request.scale = *scale;
    }
    if (const auto axes = args.text("axes")) {
        if (axes->empty()) args.fail("axes");
        request.axes_list = *axes;
        request.axes = axes_named(*axes);
    }
    request.tokens = words_in(args, "tokens");
    request.context_tokens = words_in(args, "context_tokens");
    request.heads = whole_list(args, "head");
    request.layers = whole_list(args, "layer");
    // Each is drawn once, in the order of the layers.
    std::ranges::sort(request.layers);
    request.layers.erase(std::unique(request.layers.begin(), request.layers.end()),
                         request.layers.end());
    request.title = args.text("title").value_or("");
    if (args.has("title") && request.title.empty()) args.fail("title");
    request.csv = with_flags({}, args).csv;
    plot(request);
    return 0;
}

constexpr Option plot_options[] = {
    {.key = "output",
     .limits = {.expected = "a name of a file"},
     .argument = "FILE",
     .help = "draw as .svg, .png or .html, by the name (default: the terminal)",
     .letter = 'o'},
    {.key = "array",
     .argument = "LIST",
     .help = "arrays to draw, or all (default attention_weights; html: all)"},
    {.key = "axes",
     .limits = {.expected = "a list of layer, batch, head, query, key, token, row or column"},
     .argument = "LIST",
     .help = "what an array's axes count: layer,head,query,key (default: as in attn's arrays)"},
    {.key = "head",
     .limits = {.expected = "integers from 0, one per head"},
     .argument = "N,...",
     .help = "draw these heads, from 0 (default all)"},
    {.key = "layer",
     .limits = {.expected = "integers from 0, one per layer"},
     .argument = "N,...",
     .help = "draw these layers, from 0 (default all)"},
    {.key = "tokens",
     .limits = {.expected = "words, one per token"},
     .argument = "LIST",
     .help = "labels of the rows, and of the columns where they are the same tokens (default: the "
             "result's)"},
    {.key = "context_tokens",
     .limits = {.expected = "words, one per key"},
     .argument = "LIST",
     .help = "labels of the keys, where they are others (default: the result's)"},
    {.key = "title",
     .field = text_field,
     .limits = {.expected = "a line of text"},
     .argument = "TEXT",
     .help = "the picture's title (default: from the result)"},
    {.key = "color_scale",
     .limits = {.expected = io::color_scale_expected},
     .argument = io::color_scale_argument,
     .help = io::color_scale_help},
};

constexpr HelpOverride common_plot_flags[] = {
    {"output", "draw as .svg, .png or .html, by the name"},
    {"array", "arrays to draw, or all"},
    {"head", "draw these heads, from 0 (default all)"},
    {"layer", "draw these layers, from 0 (default all)"},
    {"tokens", "labels of the rows, and of the columns if alike"},
    {"axes", "what an array's axes count: layer,head,query,key"},
    {"title", "the picture's title"},
    {"color_scale", "the value of full colour"},
};

}  // namespace

constexpr CommandRow plot_command{
    .name = "plot",
    .summary = "heat maps of a result: on the terminal, or as svg, png or html",
    .examples =
        "  attn plot result.json\n"
        "  attn multihead tokens.csv --heads 2 --emit all | attn plot -o layer.html\n"
        "  attn plot layer0.npz layer1.npz layer2.npz -o model.html\n"
        "  attn plot result.npz --array scores --color-scale row -o scores.svg\n",
    .usage =
        "[RESULT ...]\n\nRESULT is a result of attn, or an array in any format that it reads; "
        "FILE:NAME picks one array; - or\nnothing is standard input. Several results of one shape "
        "are the layers of a model. Terminals: NO_COLOR, "
        "CLICOLOR_FORCE, COLORTERM, TERM and COLUMNS count.",
    .common_flags = common_plot_flags,
    .takes = in_files,
    .shown_flags = csv_help,
    .own = plot_options,
    .run = run_plot};

}  // namespace attn::cli
