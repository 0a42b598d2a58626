#include "io/plot/heat_map.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"
#include "io/plot/text_line.hpp"
#include "io/read/result_view.hpp"
#include "io/text/number_text.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {
namespace {

constexpr std::size_t widest_map_title = 200, widest_layer = 40, max_panels = 4096;

bool has_negative(const AnyArray& values) {
    return std::visit(
        [](const auto& all) {
            return std::any_of(all.data(), all.data() + all.size(), [](auto x) { return x < 0; });
        },
        values);
}

/// Whether the array has statistics of the weights: per query or key, or per head as `attn scan`
/// writes them.
bool holds_statistics(const NamedArray& array) {
    const auto known = find_array(without_stack(array.name));
    const std::size_t rank = array.axes.size();
    return (known && known->row().is_statistic()) ||
           (rank >= 2 && array.axes[rank - 2] == "layer" && array.axes[rank - 1] == "heads");
}

/// Arrays that are not attn's are drawn in diverging colours if some of their numbers are negative;
/// so are weights, as those of linear attention may be.
ArrayColors colors_of_array(const NamedArray& array) {
    const auto known = find_array(without_stack(array.name));
    const ArrayColors colors = known ? colors_of(*known) : ArrayColors::from_zero;
    return colors == ArrayColors::from_zero && has_negative(array.values) ? ArrayColors::diverging
                                                                          : colors;
}

std::string axis_text(std::string_view axis) {
    if (axis == "q_len") return "query";
    if (axis == "heads") return "head";
    if (axis == "kv_len") return "key";
    if (axis == "tokens") return "token";
    return std::string(axis);
}

/// "What each word attends to", "Context vectors", "W_query", "Gradient w.r.t. W_query".
std::string subject_of(const std::string& array, bool is_weights, bool of_words) {
    if (array.starts_with("grad_")) return "Gradient w.r.t. " + array.substr(array.find('_') + 1);
    if (is_weights)
        return std::string("What each ") + (of_words ? "word" : "query") + " attends to";
    if (array.size() > 1 && array[1] == '_') return array;
    std::string words = array;
    std::ranges::replace(words, '_', ' ');
    if (!words.empty() && words[0] >= 'a' && words[0] <= 'z')
        words[0] = static_cast<char>(words[0] - 'a' + 'A');
    return words;
}

/// "batch 0, head 3": the index of a number on these axes.
std::string panel_index_text(std::span<const PanelAxis> axes, std::size_t number) {
    std::string text;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        const std::string part = axis->label(number % axis->size);
        text = text.empty() ? part : part + ", " + text;
        number /= axis->size;
    }
    return text;
}

class Builder {
public:
    Builder(const Report& report, const NamedArray& array, const IsMasked& is_masked,
            const HeatMapLimits& limits)
        : report_(report), array_(array), is_masked_(array, is_masked, report.first_query),
          limits_(limits), shape_(shape_of(array)), colors_(colors_of_array(array)),
          may_be_dropped_(report.has_dropout && array.name == "attention_weights") {}

    HeatMap build(ColorScale scale) {
        const std::size_t rank = shape_.size();
        const bool has_layers = rank > 0 && array_.axes.front() == "layer";
        if (rank < 2 || rank > (has_layers ? 6 : 5))
            throw Error(ErrorKind::usage, array_.name, "has rank ", rank,
                        "; expected 2 to 5, that is one matrix or several");
        map_.array = array_.name;
        map_.asked = scale;
        map_.is_diverging = colors_ != ArrayColors::from_zero;
        map_.is_float32 = std::holds_alternative<Array<float>>(array_.values);
        rows_ = shape_[rank - 2];
        columns_ = shape_[rank - 1];
        map_.all_rows = rows_;
        map_.all_columns = columns_;
        map_.row_step = (rows_ + limits_.rows - 1) / limits_.rows;
        map_.column_step = (columns_ + limits_.columns - 1) / limits_.columns;
        map_.rows = (rows_ + map_.row_step - 1) / map_.row_step;
        map_.columns = (columns_ + map_.column_step - 1) / map_.column_step;
        set_labels();
        std::size_t panels = 1;
        for (std::size_t axis = 0; axis + 2 < rank; ++axis) {
            const std::string_view name = array_.axes[axis];
            if (name == "batch" && shape_[axis] == 1) continue;  // "batch 0" would tell nothing
            map_.panel_axes.push_back({name == "heads" ? "head" : std::string(name), shape_[axis]});
            std::vector<std::string>& labels = map_.panel_axes.back().labels;
            if (name == "heads" && has_chosen_heads(report_, array_))
                for (std::size_t head : report_.heads)
                    labels.push_back("head " + std::to_string(head));
            if (name == "layer" && array_.layer_labels.size() == shape_[axis])
                for (const std::string& label : array_.layer_labels)
                    labels.push_back(label_text(label, widest_layer));
            panels *= shape_[axis];
        }
        if (panels > max_panels)
            throw Error(ErrorKind::unsupported, array_.name, panels,
                        " matrices to draw; expected at most ", max_panels);
        set_texts();
        map_.panels.reserve(panels);
        std::visit(
            [&](const auto& values) {
                for (std::size_t panel = 0; panel < panels; ++panel)
                    add_panel(values.data() + panel * rows_ * columns_, panel);
            },
            array_.values);
        map_.peak = magnitudes_.peak();
        map_.robust = magnitudes_.robust(map_.is_diverging);
        // Statistics have few cells, and the largest values matter most.
        map_.automatic = holds_statistics(array_) ? ColorScale(ColorScale::global)
                         : map_.is_diverging      ? ColorScale(ColorScale::robust)
                                                  : ColorScale::up_to(magnitudes_.shared());
        return std::move(map_);
    }

private:
    void set_labels() {
        const std::size_t rank = shape_.size();
        if (array_.axes[rank - 2] == "q_len") map_.first_row = report_.first_query;
        const auto labels = [&](std::size_t axis, std::size_t cells, std::size_t step,
                                bool& of_tokens) {
            const std::size_t first = axis == rank - 2 ? map_.first_row : 0;
            const auto names = labels_of(report_, array_, axis);
            of_tokens = !names.empty();
            std::vector<std::string> texts;
            texts.reserve(cells);
            for (std::size_t cell = 0; cell < cells; ++cell)
                texts.push_back(of_tokens ? names[cell * step]
                                          : std::to_string(first + cell * step));
            return texts;
        };
        map_.row_labels = labels(rank - 2, map_.rows, map_.row_step, map_.tokens_on_rows);
        map_.column_labels =
            labels(rank - 1, map_.columns, map_.column_step, map_.tokens_on_columns);
        // Parameters may be transposed, depending on their initialiser or file.
        const bool is_parameter = array_.name.starts_with("W_") || array_.name.starts_with("b_");
        map_.row_axis = is_parameter ? "row" : axis_text(array_.axes[rank - 2]);
        map_.column_axis = is_parameter ? "column" : axis_text(array_.axes[rank - 1]);
    }

    void set_texts() {
        map_.title = label_text(report_.title_start + array_.name + " " + shape_text(shape_) +
                                    (mean().empty() ? "" : "  " + mean()) + report_.title_end,
                                widest_map_title);
        if (map_.row_step * map_.column_step > 1)
            map_.note = "each cell is the largest of " + std::to_string(map_.row_step) + " x " +
                        std::to_string(map_.column_step) +
                        (map_.is_diverging ? " elements, by magnitude" : " elements");
        const bool may_be_weights =
            !find_array(without_stack(array_.name)) && counts_queries_and_keys(array_);
        const bool is_weights =
            array_.name.ends_with("attention_weights") || (may_be_weights && holds_weights(array_));
        map_.heading = label_text(
            report_.heading.empty()
                ? subject_of(array_.name, is_weights, map_.tokens_on_rows) + circumstances()
                : report_.heading,
            widest_map_title);
    }

    /// ": causal, 3 heads", ": causal, head 2".
    std::string circumstances() const {
        const std::string& start = report_.title_start;
        std::string text = start.substr(0, start.find_last_not_of(' ') + 1);
        for (const PanelAxis& axis : map_.panel_axes) {
            if (axis.size < 2 && axis.labels.empty()) continue;
            const std::string things = axis.name == "batch" ? "batch entries" : axis.name + "s";
            text += (text.empty() ? "" : ", ") +
                    (axis.size < 2 ? axis.label(0) : std::to_string(axis.size) + " " + things);
        }
        if (!mean().empty()) text += (text.empty() ? "" : ", ") + mean();
        return text.empty() ? text : ": " + text;
    }

    /// "mean of 3 heads"; empty for arrays of each head.
    std::string mean() const {
        if (report_.averaged_heads == 0 || array_.name != "attention_weights") return "";
        return "mean of " + std::to_string(report_.averaged_heads) + " heads";
    }

    template <class T>
    void add_panel(const T* values, std::size_t number) {
        HeatPanel panel;
        panel.title = panel_index_text(map_.panel_axes, number);
        panel.values.assign(map_.rows * map_.columns, 0);
        panel.row_peak.assign(map_.rows, 0);
        std::vector<std::uint8_t> masked(map_.rows * map_.columns, 0);
        bool any_masked = false;
        std::vector<double> seen;
        magnitudes_.begin_matrix();
        for (std::size_t row = 0; row < map_.rows; ++row) {
            seen.clear();
            for (std::size_t column = 0; column < map_.columns; ++column) {
                const std::size_t cell = row * map_.columns + column;
                const auto [value, is_empty] = cell_of(values, number, row, column);
                panel.values[cell] = value;
                masked[cell] = is_empty ? 1 : 0;
                any_masked = any_masked || is_empty;
                if (is_empty) continue;
                if (!std::isfinite(value)) {
                    map_.has_no_number = true;
                    continue;
                }
                seen.push_back(std::abs(value));
                map_.largest = std::max(map_.largest, value);
                map_.smallest = std::min(map_.smallest, value);
                map_.has_dropped = map_.has_dropped || (value == 0 && may_be_dropped_);
            }
            magnitudes_.add_row(seen, map_.columns == 1);
            if (!seen.empty()) panel.row_peak[row] = *std::ranges::max_element(seen);
        }
        if (any_masked) panel.masked = std::move(masked);
        map_.has_masked = map_.has_masked || any_masked;
        map_.panels.push_back(std::move(panel));
    }

    bool is_unseen(double value, std::size_t panel, std::size_t row, std::size_t column) const {
        const bool is_marked = colors_ == ArrayColors::diverging_masked &&
                               value == -std::numeric_limits<double>::infinity();
        return is_marked || is_masked_(panel, row, column);
    }

    /// The element of largest magnitude among a cell's unmasked elements, NaN if one of them is;
    /// whether there are none.
    template <class T>
    std::pair<double, bool> cell_of(const T* values, std::size_t panel, std::size_t row,
                                    std::size_t column) const {
        double largest = 0;
        bool is_empty = true;
        const std::size_t last_row = std::min(rows_, (row + 1) * map_.row_step);
        const std::size_t last_column = std::min(columns_, (column + 1) * map_.column_step);
        for (std::size_t r = row * map_.row_step; r < last_row; ++r)
            for (std::size_t c = column * map_.column_step; c < last_column; ++c) {
                const auto value = static_cast<double>(values[r * columns_ + c]);
                if (is_unseen(value, panel, r, c)) continue;
                if (!std::isfinite(value)) return {std::numeric_limits<double>::quiet_NaN(), false};
                if (is_empty || std::abs(value) > std::abs(largest)) largest = value;
                is_empty = false;
            }
        return {largest, is_empty};
    }

    const Report& report_;
    const NamedArray& array_;
    const MaskedCells is_masked_;
    const HeatMapLimits& limits_;
    std::vector<std::size_t> shape_;
    ArrayColors colors_;
    bool may_be_dropped_;
    std::size_t rows_ = 0, columns_ = 0;
    HeatMap map_;
    Magnitudes magnitudes_;
};

}  // namespace

bool holds_weights(const NamedArray& array) {
    constexpr double tolerance = 1e-2;
    return std::visit(
        [&](const auto& values) {
            const std::size_t columns = values.shape().back();
            for (std::size_t first = 0; first < values.size(); first += columns) {
                double sum = 0;
                for (std::size_t i = first; i < first + columns; ++i) {
                    const auto x = static_cast<double>(values.data()[i]);
                    if (!(x >= 0 && x <= 1)) return false;
                    sum += x;
                }
                if (std::abs(sum - 1) > tolerance) return false;
            }
            return true;
        },
        array.values);
}

HeatMap::RowScale HeatMap::row_scale(std::size_t panel, std::size_t row) const {
    const double full = full_color(asked);
    return {full == 0 ? panels[panel].row_peak[row] : full, is_diverging,
            asked.kind == ColorScale::log};
}

double HeatMap::RowScale::position(double value) const {
    if (full == 0) return 0;
    const double part = std::clamp(value / full, is_diverging ? -1.0 : 0.0, 1.0);
    if (!is_log || part == 0) return part;
    const double size = 1 + std::log(std::abs(part)) / std::log(log_range);
    return std::copysign(std::max(size, 0.0), part);
}

double HeatMap::full_color(ColorScale of) const {
    const ColorScale scale = resolved(of);
    switch (scale.kind) {
        case ColorScale::row: return 0;
        case ColorScale::given: return scale.full;
        case ColorScale::robust: return robust;
        case ColorScale::fixed:
            if (!is_diverging) return 1;
            break;
        default: break;
    }
    return peak > 0 ? peak : 1;
}

std::vector<ScaleTick> HeatMap::ticks_of(ColorScale of) const {
    const double full = full_color(of);
    if (of.kind == ColorScale::log) return log_ticks(full, is_diverging);
    if (full > 0) return even_ticks(full, is_diverging, {largest > full, smallest < -full});
    if (is_diverging) return {{-1, "-100 %"}, {0, "0"}, {1, "100 %"}};
    return {{0, "0"}, {0.5, "50 %"}, {1, "100 %"}};
}

std::string HeatMap::words_of(ColorScale of) const {
    const double full = full_color(of);
    if (full == 0) return "full colour: the largest of each row, " + row_peaks_text();
    const std::string top = even_ticks(full, false, {peak > full}).back().text;
    return (of.kind == ColorScale::log ? "logarithmic scale up to " : "full colour: ") + top;
}

std::string HeatMap::row_heading(std::size_t group) const {
    return panel_index_text(std::span(panel_axes).first(panel_axes.size() - 1), group);
}

std::string HeatMap::row_peaks_text() const {
    double least = peak;
    for (const HeatPanel& panel : panels)
        for (const double of_row : panel.row_peak)
            if (of_row > 0) least = std::min(least, of_row);
    return rounded_text(least) + (least < peak ? " to " + rounded_text(peak) : "");
}

std::string HeatMap::number_text(double value) const {
    if (!std::isfinite(value)) return "no number";
    return is_float32 ? io::number_text(static_cast<float>(value)) : io::number_text(value);
}

HeatMap make_heat_map(const Report& report, const NamedArray& array, const IsMasked& is_masked,
                      ColorScale scale, const HeatMapLimits& limits) {
    return Builder(report, array, is_masked, limits).build(scale);
}

}  // namespace attn::io
