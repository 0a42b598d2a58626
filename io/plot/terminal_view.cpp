#include "io/plot/terminal.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "io/text/display_width.hpp"
#include "io/text/utf8.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {
namespace {

constexpr std::size_t max_numbered = 24;  // the most tokens whose cells show numbers
constexpr std::size_t widest_terminal_label = 12, shortest_label = 4, widest_cell = 8;

/// Columns available for labels next to the map, with a blank after them.
std::size_t label_room(const Terminal& terminal) {
    return std::min<std::size_t>(terminal.columns / 3, widest_terminal_label + 1);
}

/// Columns of each of this many panels side by side.
std::size_t share_of(std::size_t columns, std::size_t panels) {
    return less((columns + panel_gap) / panels, panel_gap);
}

std::size_t widest_of(const std::vector<std::string>& labels) {
    std::size_t widest = 0;
    for (const std::string& label : labels)
        widest = std::max(widest, display_width(printable(label)));
    return widest;
}

class ViewChoice {
public:
    ViewChoice(const HeatMap& map, const Terminal& terminal)
        : map_(map), terminal_(terminal),
          label_(std::min(widest_of(map.row_labels) + 1, label_room(terminal))),
          title_(widest_title()) {}

    View best() const {
        constexpr std::size_t screen = 40;
        std::vector<View> views;
        if (std::max(map_.rows, map_.columns) <= max_numbered) {
            if (map_.row_step * map_.column_step == 1) add_numbered(views);
            const std::size_t width = label_ + 2 * map_.columns;
            if (width <= terminal_.columns)
                views.push_back(completed({.cell = 2, .label = label_}, width));
        }
        views.push_back(
            completed({.is_halved = terminal_.depth != ColorDepth::none, .label = label_},
                      label_ + map_.columns));
        for (const View& view : views)
            if (view.across == map_.panel_columns() || view.lines <= screen) return view;
        return *std::min_element(views.begin(), views.end(),
                                 [](const View& a, const View& b) { return a.lines < b.lines; });
    }

private:
    std::size_t widest_title() const {
        std::size_t widest = 0;
        for (const HeatPanel& panel : map_.panels)
            widest = std::max(widest, display_width(panel.title));
        return std::min(widest, terminal_.columns);
    }

    /// As many side by side as leave space for the digits and four columns of each label.
    void add_numbered(std::vector<View>& views) const {
        // Two digits, a sign if there may be one, and a separator.
        const std::size_t least = map_.is_diverging ? 4 : 3;
        const std::size_t most =
            std::clamp(widest_of(map_.column_labels) + 1, least, std::max(least, widest_cell));
        for (std::size_t across = std::max<std::size_t>(map_.panel_columns(), 1); across > 0;
             --across) {
            const std::size_t wide = share_of(terminal_.columns, across);
            const std::size_t fewest = map_.columns * least + std::min(label_, shortest_label + 1);
            if (wide < fewest || wide < title_) continue;
            const std::size_t space = wide - map_.columns * least;
            View view{.is_numbered = true, .label = std::min(label_, space)};
            const std::size_t fits = (wide - view.label) / std::max<std::size_t>(map_.columns, 1);
            view.cell = std::clamp(fits, least, most);
            views.push_back(completed(view, view.label + map_.columns * view.cell));
            return;
        }
    }

    View completed(View view, std::size_t width) const {
        const std::size_t heads = std::max<std::size_t>(map_.panel_columns(), 1);
        const std::size_t fit =
            (terminal_.columns + panel_gap) / (std::max(width, title_) + panel_gap);
        view.across = std::clamp<std::size_t>(fit, 1, heads);
        const std::size_t rows = view.is_halved ? (map_.rows + 1) / 2 : map_.rows;
        const std::size_t folds = (heads + view.across - 1) / view.across;
        view.lines = map_.panels.size() / heads * folds * (rows + 2);
        return view;
    }

    const HeatMap& map_;
    const Terminal& terminal_;
    std::size_t label_, title_;
};

}  // namespace

View view_of(const HeatMap& map, const Terminal& terminal) {
    return ViewChoice(map, terminal).best();
}

HeatMapLimits limits_of(const Terminal& terminal, const NamedArray& array) {
    constexpr std::size_t fewest = 40;  // cells across, if heads are pooled to fit side by side
    const std::vector<std::size_t> shape = shape_of(array);
    const bool has_halves = terminal.depth != ColorDepth::none;
    // A character is twice as high as it is wide; half blocks are square.
    const auto within = [&](std::size_t wide) {
        const std::size_t columns = std::max<std::size_t>(less(wide, label_room(terminal)), 1);
        return HeatMapLimits{has_halves ? columns : std::max(max_numbered, columns / 2), columns};
    };
    const HeatMapLimits alone = within(terminal.columns);
    if (shape.size() < 3) return alone;
    const std::size_t rank = shape.size();
    if (shape[rank - 1] <= alone.columns && shape[rank - 2] <= alone.rows) return alone;
    const std::size_t fit =
        (terminal.columns + panel_gap) / (fewest + label_room(terminal) + panel_gap);
    const std::size_t across =
        std::clamp<std::size_t>(fit, 1, std::max<std::size_t>(shape[rank - 3], 1));
    return within(share_of(terminal.columns, across));
}

}  // namespace attn::io
