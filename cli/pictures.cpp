// The pictures that a request asks for; see pictures.hpp.
#include "cli/pictures.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/error.hpp"
#include "io/output_file.hpp"
#include "io/plot/html.hpp"
#include "io/plot/picture.hpp"
#include "io/plot/png.hpp"
#include "io/plot/svg.hpp"
#include "io/plot/terminal.hpp"
#include "io/row_text.hpp"

namespace attn::cli {
namespace {

bool can_be_drawn(const NamedArray& array) {
    const std::size_t rank = io::shape_of(array).size();
    return rank >= 2 && rank <= 4;
}

io::Terminal terminal_at(int descriptor) {
    winsize size{};
    const bool has_size = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0;
    return io::terminal_of(::isatty(descriptor) != 0, has_size ? size.ws_col : 0,
                           [](const char* name) { return std::getenv(name); });
}

}  // namespace

PlotFormat plot_format(const std::string& path, const std::string& where) {
    const std::string suffix = std::filesystem::path(path).extension();
    if (suffix == ".svg") return PlotFormat::svg;
    if (suffix == ".png") return PlotFormat::png;
    if (suffix == ".html" || suffix == ".htm") return PlotFormat::html;
    throw Error(ErrorKind::usage, where,
                "names no format of pictures; expected a name that ends in .svg, .png or .html");
}

bool wants_pictures(const Request& request) {
    return request.heatmap || !request.plot.empty();
}

void check_pictures(const Request& request) {
    if (!wants_pictures(request))
        for (const char* key : {"plot_array", "color_scale"})
            if (request.has(key))
                throw Error(ErrorKind::usage, place_of(request, key),
                            "nothing is drawn; expected --heatmap or --plot beside it");
    if (!request.plot.empty()) plot_format(request.plot, place_of(request, "plot"));
    if (request.format == io::Format::none && !wants_pictures(request) &&
        request.save_weights.empty())
        throw Error(ErrorKind::usage, place_of(request, "format"),
                    "leaves nothing to write; expected --heatmap, --plot or --save-weights beside "
                    "it");
    if (request.format == io::Format::none && request.output != "-")
        throw Error(ErrorKind::usage, place_of(request, "output"),
                    "format none writes nothing; expected no file, or another format");
}

std::vector<const NamedArray*> arrays_to_draw(const io::Report& report,
                                              const std::vector<std::string>& named, bool all,
                                              const std::string& where) {
    std::vector<const NamedArray*> drawable, chosen;
    std::string list;
    for (const NamedArray& array : report.arrays) {
        if (!can_be_drawn(array)) continue;
        drawable.push_back(&array);
        list += (list.empty() ? "" : ", ") + array.name;
    }
    const auto find = [&](const std::string& name) {
        return std::find_if(drawable.begin(), drawable.end(),
                            [&](const NamedArray* array) { return array->name == name; });
    };
    if (list.empty())
        throw Error(ErrorKind::usage, where,
                    "there is no array of rank 2 to 4; expected one among those that are emitted");
    for (const std::string& name : named) {
        if (find(name) == drawable.end())
            throw Error(
                ErrorKind::usage, where,
                "\"" + io::shortened(name) + "\" is not there to be drawn; expected " + list);
        chosen.push_back(*find(name));
    }
    if (!chosen.empty()) return chosen;
    const auto weights = find("attention_weights");
    if (weights == drawable.end()) return drawable;
    if (!all) return {*weights};
    std::rotate(drawable.begin(), weights, weights + 1);  // what is looked at first
    return drawable;
}

std::string terminal_text(const io::Report& report, const std::vector<const NamedArray*>& arrays,
                          const io::IsBlocked& is_blocked, io::ColorScale scale, int descriptor) {
    const io::Terminal terminal = terminal_at(descriptor);
    io::TextOutput out;
    for (const NamedArray* array : arrays)
        io::write_terminal(
            out, io::make_heat_map(report, *array, is_blocked, scale, io::limits_of(terminal)),
            terminal);
    return std::move(out.text());
}

void write_plot(const io::Report& report, const std::vector<const NamedArray*>& arrays,
                const io::IsBlocked& is_blocked, io::ColorScale scale, const std::string& path,
                PlotFormat format) {
    std::vector<io::HeatMap> maps;
    for (const NamedArray* array : arrays)
        maps.push_back(io::make_heat_map(
            report, *array, is_blocked, scale,
            format == PlotFormat::html ? io::HeatMapLimits{} : io::picture_limits(*array)));
    io::OutputFile out(path);
    switch (format) {
        case PlotFormat::svg: io::write_svg(out, maps); break;
        case PlotFormat::png: io::write_png(out, maps); break;
        case PlotFormat::html: io::write_html(out, maps); break;
    }
    out.commit();
}

void draw_pictures(const Request& request, const io::Report& report,
                   const io::IsBlocked& is_blocked) {
    const io::ColorScale scale = request.color_scale.value_or(io::ColorScale::fixed);
    const std::string where = place_of(request, request.has("plot_array") ? "plot_array"
                                                : request.heatmap         ? "heatmap"
                                                                          : "plot");
    if (!request.plot.empty()) {
        const PlotFormat format = plot_format(request.plot, where);
        write_plot(report,
                   arrays_to_draw(report, request.plot_array, format == PlotFormat::html, where),
                   is_blocked, scale, request.plot, format);
    }
    if (!request.heatmap) return;
    const bool is_free = request.output != "-" || request.format == io::Format::none;
    const auto arrays = arrays_to_draw(report, request.plot_array, false, where);
    const std::string text =
        terminal_text(report, arrays, is_blocked, scale, is_free ? STDOUT_FILENO : STDERR_FILENO);
    if (is_free)
        (io::OutputFile("-") << text).commit();
    else
        std::fputs(text.c_str(), stderr);
}

}  // namespace attn::cli
