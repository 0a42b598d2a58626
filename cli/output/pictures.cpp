#include "cli/output/pictures.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <numeric>

#include "cli/output/output.hpp"
#include "core/base/error.hpp"
#include "core/operator/arrays.hpp"
#include "io/file/access.hpp"
#include "io/plot/terminal.hpp"
#include "io/text/text.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

io::Terminal terminal_at(int descriptor) {
    winsize size{};
    const bool has_size = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0;
    return io::terminal_of(::isatty(descriptor) != 0, has_size ? size.ws_col : 0,
                           [](const char* name) { return std::getenv(name); });
}

/// A page shows every element of one layer. Pages of many layers are reduced to 2^24 cells, as many
/// as sixteen heads of 1024 tokens, but not below 16 rows.
io::HeatMapLimits page_limits(const NamedArray& array) {
    constexpr std::size_t max_cells = std::size_t{1} << 24, min_cells = 16;
    const std::vector<std::size_t> shape = io::shape_of(array);
    io::HeatMapLimits limits;
    if (array.axes.front() != "layer") return limits;
    const std::size_t rows = shape[shape.size() - 2], columns = shape.back();
    const std::size_t panels =
        std::accumulate(shape.begin(), shape.end() - 2, std::size_t{1}, std::multiplies<>());
    while (limits.rows > min_cells &&
           panels * std::min(rows, limits.rows) * std::min(columns, limits.columns) > max_cells)
        limits = {limits.rows / 2, limits.columns / 2};
    return limits;
}

/// Whether this array would have one axis, of queries or keys, as the others of its question tell.
bool would_have_one_axis(const std::string& name, const std::vector<const NamedArray*>& others) {
    const auto array = find_array(name);
    return array && array->row().axes[2] != Axis::none && array->row().axes[3] == Axis::none &&
           std::ranges::any_of(others, [](const NamedArray* other) {
               return io::counts_queries_and_keys(*other) && other->axes.size() == 2;
           });
}

/// Whether the array has rank 2 to 5, or 6 with layers.
bool can_be_drawn(const NamedArray& array) {
    const std::size_t rank = io::shape_of(array).size();
    const bool has_layers = rank != 0 && array.axes.front() == "layer";
    return rank >= 2 && rank <= (has_layers ? 6 : 5);
}

}  // namespace

std::string text_of_draws(const Plan& plan, const std::string& seed) {
    if (plan.projects) return "  random parameters  seed " + seed;
    return plan.config.dropout > 0 ? "  seed " + seed : "";
}

const io::PictureFormat& picture_format(const std::string& path, const std::string& location) {
    return *format_of_name(io::picture_formats, {path, location, "names no format of pictures"},
                           true);
}

void check_pictures(const Request& request) {
    constexpr const char* needs = "requires --heatmap or --plot";
    const bool writes = request.format->write != nullptr, draws = request.wants_pictures();
    refuse(request, {{"plot_array", !draws && request.has("plot_array"), needs},
                     {"color_scale", !draws && request.has("color_scale"), needs}});
    if (!request.plot.empty()) picture_format(request.plot, location_of(request, "plot"));
    refuse(request,
           {{"format", !writes && !draws && request.save_weights.empty(),
             "leaves nothing to write; requires --heatmap or --plot"},
            {"emit", !writes && !draws && request.has("emit"),
             "format none writes no array; requires --heatmap or --plot, or another format"},
            {"output", !writes && request.output != "-",
             "format none writes nothing; expected no file, or another format"}});
}

std::vector<const NamedArray*> arrays_to_draw(const io::Report& report,
                                              const std::vector<std::string>& named, bool all,
                                              const std::string& location) {
    std::vector<const NamedArray*> drawable, chosen;
    for (const NamedArray& array : report.arrays)
        if (can_be_drawn(array)) drawable.push_back(&array);
    const auto find = [&](const std::string& name) {
        return std::ranges::find(drawable, name, &NamedArray::name);
    };
    const NamedArray* flat =
        drawable.empty() && !report.arrays.empty() ? &report.arrays.front() : nullptr;
    for (const std::string& name : named)
        if (const NamedArray* array = array_named(name, report.arrays);
            array != nullptr && !can_be_drawn(*array))
            flat = array;
    const auto refuse_axes = [&](const std::string& name, std::size_t axes) {
        const bool is_of_flag = location.starts_with("--");  // or of a file
        throw Error(is_of_flag ? ErrorKind::usage : ErrorKind::input, location, name, " has ",
                    axes == 1 ? "one axis" : std::to_string(axes) + " axes",
                    " and cannot be drawn; expected an array of 2 to 5 axes",
                    drawable.empty() ? "" : ": " + io::comma_list(drawable, &NamedArray::name));
    };
    if (flat != nullptr)
        refuse_axes(flat->name + " " + shape_text(io::shape_of(*flat)), flat->axes.size());
    if (drawable.empty())
        throw Error(ErrorKind::usage, location,
                    "no array to draw; expected --emit attention_weights, or another array of 2 to "
                    "5 axes");
    for (const std::string& name : named)
        if (find(name) == drawable.end() && would_have_one_axis(name, drawable))
            refuse_axes(name, 1);
    for (const std::string& name : named) {
        if (name == "all" && named.size() == 1) return drawable;
        const auto of_layer = io::split_layer_name(name);
        if (of_layer && find(name) == drawable.end() && find(of_layer->array) != drawable.end())
            throw Error(ErrorKind::usage, location,
                        "\"" + io::shortened(name) +
                            "\" is drawn as a layer of its array; expected " + of_layer->array +
                            ", and --layer " + std::to_string(of_layer->layer) +
                            " of attn plot for this layer alone");
        if (find(name) == drawable.end())
            throw Error(
                ErrorKind::usage, location, "\"", io::shortened(name),
                "\" is not there to be drawn; expected ",
                io::shortened(io::comma_list(drawable, &NamedArray::name), io::longest_list),
                find_array(io::without_stack(name))
                    ? ", all, or --emit " + name + " where the result is computed"
                    : " or all");
        chosen.push_back(*find(name));
    }
    if (!chosen.empty()) return chosen;
    // Readers look at the weights first. An encoder-decoder model has three kinds.
    const auto rest =
        std::stable_partition(drawable.begin(), drawable.end(), [](const NamedArray* array) {
            return io::without_stack(array->name) == "attention_weights";
        });
    if (!all && rest != drawable.begin()) drawable.erase(rest, drawable.end());
    return drawable;
}

std::string terminal_text(const io::Report& report, const std::vector<const NamedArray*>& arrays,
                          io::ColorScale scale, int descriptor) {
    const io::Terminal terminal = terminal_at(descriptor);
    io::TextOutput out;
    for (const NamedArray* array : arrays)
        io::write_terminal(out,
                           io::make_heat_map(report, *array, masked_cells_of(report, *array), scale,
                                             io::limits_of(terminal, *array)),
                           terminal);
    return std::move(out.text());
}

void write_plot(io::Output& out, const io::Report& report,
                const std::vector<const NamedArray*>& arrays, io::ColorScale scale,
                const io::PictureFormat& format) {
    std::vector<io::HeatMap> maps;
    maps.reserve(arrays.size());
    for (const NamedArray* array : arrays)
        maps.push_back(
            io::make_heat_map(report, *array, masked_cells_of(report, *array), scale,
                              format.holds_all ? page_limits(*array) : io::picture_limits(*array)));
    format.write(out, maps);
}

int descriptor_of_heatmap(const Request& request) {
    const bool is_free = request.format->write == nullptr ||
                         io::inherited_descriptor(request.output) != STDOUT_FILENO;
    return is_free ? STDOUT_FILENO : STDERR_FILENO;
}

std::string draw_pictures(const Request& request, const io::Report& given,
                          std::optional<io::OutputFile>& file) {
    io::Report stacked;
    if (!given.layers.empty()) {
        stacked = given;
        stack_layers(stacked, given.layers);
    }
    const io::Report& report = given.layers.empty() ? given : stacked;
    const io::ColorScale scale = request.color_scale.value_or(io::ColorScale::automatic);
    const std::string location = location_of(request, request.has("plot_array") ? "plot_array"
                                                      : request.heatmap         ? "heatmap"
                                                                                : "plot");
    if (!request.plot.empty()) {
        const io::PictureFormat& format = picture_format(request.plot, location);
        const auto arrays = arrays_to_draw(report, request.plot_array, format.holds_all, location);
        file.emplace(request.plot);
        file->fill([&](io::Output& to) { write_plot(to, report, arrays, scale, format); });
    }
    if (!request.heatmap) return {};
    return terminal_text(report, arrays_to_draw(report, request.plot_array, false, location), scale,
                         descriptor_of_heatmap(request));
}

}  // namespace attn::cli
