#include "cli/plot/plot.hpp"

#include <unistd.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/file/output.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// States how a file that does not describe its array is interpreted.
std::string note_of_plain(const Drawing& drawing, const NamedArray& array) {
    std::string file = drawing.place == "<stdin>" ? "-" : drawing.place;
    if (drawing.report.arrays.size() > 1) file += ":" + array.name;
    return drawing.place + ": a plain array, drawn with the axes " + io::axes_text(array) +
           "; --axes LIST names others" +
           (array.axes.size() == 2
                ? ", attn self " + file + " --heatmap draws the attention of its rows"
                : "");
}

void check_axes(const io::Report& report, const PlotRequest& request, const AxisNames& axes) {
    // Several results have an axis of layers before the given axes.
    const auto has_them = [&](const NamedArray& array) {
        return array.axes.size() >= axes.size() &&
               std::equal(axes.rbegin(), axes.rend(), array.axes.rbegin());
    };
    if (axes.empty() || std::any_of(report.arrays.begin(), report.arrays.end(), has_them)) return;
    throw Error(ErrorKind::usage, "--axes " + request.axes,
                std::to_string(axes.size()) + " axes; expected as many as an array has, and " +
                    report.arrays.front().name + " has " +
                    std::to_string(io::shape_of(report.arrays.front()).size()));
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
        if (words.empty() || std::any_of(drawn.begin(), drawn.end(), has_words)) return;
        const NamedArray& first = *drawn.front();
        throw Error(ErrorKind::input, flag,
                    std::to_string(words.size()) + (words.size() == 1 ? " word" : " words") +
                        " for " + first.name + " " + shape_text(io::shape_of(first)) +
                        "; expected one for each " + name +
                        ", or --axes that names queries and keys");
    };
    check("--tokens", request.tokens, 2, "row");
    check("--context-tokens", request.context_tokens, 1, "column");
}

/// The names of the arrays that are not in `left`: "keys, values".
std::string names_without(const std::vector<const NamedArray*>& arrays,
                          const std::vector<const NamedArray*>& left) {
    std::string names;
    for (const NamedArray* array : arrays)
        if (std::find(left.begin(), left.end(), array) == left.end())
            names += (names.empty() ? "" : ", ") + array->name;
    return names;
}

[[noreturn]] void fail_without_matrix(const Drawing& drawing) {
    const std::vector<NamedArray>& arrays = drawing.report.arrays;
    if (arrays.size() == 1 && io::shape_of(arrays.front()).size() == 1)
        throw Error(
            ErrorKind::input, drawing.place,
            arrays.front().name + " " + shape_text(io::shape_of(arrays.front())) +
                " has rank 1; expected rank 2 to 5. In JSON, a matrix of one row is [[...]]");
    throw Error(ErrorKind::input, drawing.place,
                "holds no array of rank 2 to 5; expected one that can be drawn");
}

}  // namespace

void plot(const PlotRequest& request, std::vector<std::string>& notes,
          std::vector<std::string>& terminal_notes) {
    const bool to_file = !request.output.empty();
    const io::PictureFormat* format =
        to_file ? &picture_format(request.output, "--output " + request.output) : nullptr;
    const std::string where = request.arrays.empty() ? request.results.front() : "--array";
    const AxisNames axes = request.axes.empty() ? AxisNames{} : axes_named(request.axes);
    const auto choose = [&](const Drawing& drawing) {
        const io::Report& report = drawing.report;
        check_axes(report, request, axes);
        if (std::none_of(report.arrays.begin(), report.arrays.end(), can_be_drawn))
            fail_without_matrix(drawing);
        std::vector<std::string> names = request.arrays;
        if (drawing.is_selected || (names.empty() && !drawing.named.empty()))
            names = {drawing.named};
        return arrays_to_draw(report, names, to_file && format->holds_all, where);
    };
    ThreadPool workers;
    Drawing drawing =
        read_drawing(request.results,
                     {axes, request.tokens, request.context_tokens, request.csv, request.layers},
                     choose, workers);
    terminal_notes.insert(terminal_notes.end(), drawing.notes.begin(), drawing.notes.end());
    io::Report& report = drawing.report;
    if (!drawing.lacks_weights.empty() && request.arrays.empty() && drawing.named.empty() &&
        (!to_file || !format->holds_all))
        throw Error(ErrorKind::usage, "--layer", drawing.lacks_weights);
    auto arrays = choose(drawing);
    check_words(arrays, drawing, request);
    if (drawing.is_plain && axes.empty()) notes.push_back(note_of_plain(drawing, *arrays.front()));
    if (!request.heads.empty()) {
        const auto left = keep_heads(report, arrays, request.heads);
        if (const std::string names = names_without(arrays, left); !names.empty())
            notes.push_back("--head: " + names + " left out, of another number of heads");
        arrays = left;
    }
    report.heading = request.title;
    if (!to_file) return io::show(terminal_text(report, arrays, request.scale, STDOUT_FILENO));
    io::OutputFile out(request.output);
    out.fill([&](io::Output& to) { write_plot(to, report, arrays, request.scale, *format); });
    out.commit();
}

}  // namespace attn::cli
