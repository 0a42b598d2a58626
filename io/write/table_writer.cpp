// Arrays as aligned columns with token labels, for people.
#include <algorithm>
#include <cmath>
#include <map>

#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"
#include "io/write/output_formats.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {
namespace {

constexpr int table_decimals = 4;

/// The shown part of a list: its start and its end.
struct Ends {
    std::size_t front, back, count;

    std::size_t shown() const { return front + back; }
    bool is_cut() const { return shown() < count; }

    /// `skip` replaces those between.
    template <class Show, class Skip>
    void for_each(Show show, Skip skip) const {
        for (std::size_t i = 0; i < front; ++i) show(i);
        if (is_cut()) skip();
        for (std::size_t i = count - back; i < count; ++i) show(i);
    }
};

Ends ends_of(std::size_t count, std::size_t most) {
    if (most == 0 || count <= most) return {count, 0, count};
    return {(most + 1) / 2, most / 2, count};
}

constexpr std::string_view dots = "...";
constexpr std::size_t gap = 2;  // blanks between columns

class TableWriter {
public:
    TableWriter(Output& out, const Report& report, const NumberStyle& style,
                const NamedArray& array)
        : out_(out), report_(report), array_(array), decimals_(style.decimals),
          limits_(style.limits),
          is_masked_(array, masked_cells_of(report, array), report.first_query),
          shape_(shape_of(array)), is_vector_(shape_.size() == 1),
          rows_(is_vector_ ? 1 : shape_[shape_.size() - 2]), columns_(shape_.back()) {
        for (std::size_t axis = 0; axis < shape_.size(); ++axis)
            labels_.push_back(labels_of(report, array, axis));
    }

    void write() {
        const std::size_t size = std::visit([](const auto& v) { return v.size(); }, array_.values);
        write(ends_of(size / (rows_ * columns_), limits_.matrices));
    }

    /// The first matrix alone.
    void write_first() { write({1, 0, 1}); }

private:
    void write(const Ends& matrices) {
        const Ends rows = ends_of(rows_, limits_.rows);
        const Ends columns = fitted(rows, [&](std::size_t column) {
            std::size_t width = 0;
            matrices.for_each(
                [&](std::size_t m) { width = std::max(width, column_width(m, rows, column)); },
                [] {});
            return width;
        });
        write_line(array_.name + " (" + axes_text(array_) + ")");
        write_note({{{columns, "columns"}, {rows, "rows"}, {matrices, "matrices"}}});
        matrices.for_each(
            [&](std::size_t matrix) {
                const std::string title = matrix_title(matrix);
                if (!title.empty()) write_line(title);
                write_matrix(matrix, rows, columns);
            },
            [&] { out_ << dots << "\n"; });
    }

    /// A number, or a dot where the mask excludes the key, whatever the number. Matrices are
    /// counted in row-major order.
    std::string cell(std::size_t matrix, std::size_t row, std::size_t column) const {
        if (is_masked_(matrix, row, column)) return std::string(masked_cell);
        const std::size_t index = (matrix * rows_ + row) * columns_ + column;
        return std::visit([&](const auto& values) { return number(values.data()[index]); },
                          array_.values);
    }

    void write_line(const std::string& words) {
        out_ << (limits_.width == 0 ? words : wrapped(words, limits_.width)) << "\n";
    }

    void write_note(const std::array<std::pair<Ends, const char*>, 3>& axes) {
        std::string text;
        for (const auto& [ends, name] : axes)
            if (ends.is_cut())
                text += (text.empty() ? "(" : ", ") + std::to_string(ends.shown()) + " of " +
                        std::to_string(ends.count) + " " + name;
        if (!text.empty()) write_line(text + " shown; " + std::string(limits_.way) + ")");
    }

    /// As many columns as fit next to the labels, taken from both ends in turn; always the first.
    template <class WidthOf>
    Ends fitted(const Ends& rows, WidthOf width_of) const {
        if (limits_.width == 0) return ends_of(columns_, 0);
        std::vector<std::size_t> widths;  // in that turn
        std::size_t used = label_width(rows);
        while (widths.size() < columns_ && used <= limits_.width) {
            const std::size_t i = widths.size();
            widths.push_back(gap + width_of(i % 2 == 0 ? i / 2 : columns_ - 1 - i / 2));
            used += widths.back();
        }
        if (widths.size() == columns_ && used <= limits_.width) return ends_of(columns_, 0);
        while (widths.size() > 1 && used + gap + dots.size() > limits_.width) {
            used -= widths.back();
            widths.pop_back();
        }
        return ends_of(columns_, std::max<std::size_t>(1, widths.size()));
    }

    std::size_t label_width(const Ends& rows) const {
        std::size_t width = 0;
        rows.for_each([&](std::size_t r) { width = std::max(width, display_width(row_label(r))); },
                      [&] { width = std::max(width, dots.size()); });
        return width;
    }

    std::size_t column_width(std::size_t matrix, const Ends& rows, std::size_t column) const {
        std::size_t width = display_width(label(shape_.size() - 1, column));
        rows.for_each(
            [&](std::size_t r) { width = std::max(width, cell(matrix, r, column).size()); },
            [&] { width = std::max(width, dots.size()); });
        return width;
    }

    /// Text is made twice, so that the table need not be stored.
    void write_matrix(std::size_t matrix, const Ends& rows, const Ends& columns) {
        const std::size_t labels = label_width(rows);
        std::vector<std::size_t> widths;  // of the shown columns
        columns.for_each([&](std::size_t c) { widths.push_back(column_width(matrix, rows, c)); },
                         [] {});
        const auto write_row = [&](const std::string& name, auto text_of) {
            std::string line = name + std::string(labels - display_width(name), ' ');
            const std::size_t* width = widths.data();
            columns.for_each(
                [&](std::size_t c) {
                    const std::string text = text_of(c);
                    line.append(gap + *width++ - display_width(text), ' ') += text;
                },
                [&] {
                    // A line with one number has no space for more.
                    if (has_room(labels, widths)) line.append(gap, ' ') += dots;
                });
            out_ << line << "\n";
        };
        write_row("", [&](std::size_t c) { return label(shape_.size() - 1, c); });
        rows.for_each(
            [&](std::size_t r) {
                write_row(row_label(r), [&](std::size_t c) { return cell(matrix, r, c); });
            },
            [&] { write_row(std::string(dots), [](std::size_t) { return std::string(dots); }); });
    }

    bool has_room(std::size_t labels, const std::vector<std::size_t>& widths) const {
        return widths.size() > 1 ||
               labels + gap + widths.front() + gap + dots.size() <= limits_.width;
    }

    std::string row_label(std::size_t row) const {
        return is_vector_ ? "" : label(shape_.size() - 2, row);
    }

    /// "batch 0, head 1" of the matrix-th matrix in row-major order, without the only batch entry.
    std::string matrix_title(std::size_t matrix) const {
        std::string title;
        for (std::size_t i = std::max<std::size_t>(shape_.size(), 2) - 2; i-- > 0;) {
            if (array_.axes[i] == "batch" && shape_[i] == 1) continue;
            const std::string axis(array_.axes[i] == "heads" ? "head" : array_.axes[i]);
            std::size_t entry = matrix % shape_[i];
            if (axis == "head" && has_chosen_heads(report_, array_)) entry = report_.heads[entry];
            const std::string part = axis + " " + std::to_string(entry);
            title = title.empty() ? part : part + ", " + title;
            matrix /= shape_[i];
        }
        return title;
    }

    std::string label(std::size_t dimension, std::size_t index) const {
        const std::span<const std::string> labels = labels_[dimension];
        if (index < labels.size()) return fitted_label(printable(labels[index]));
        if (array_.axes[dimension] == "q_len") index += report_.first_query;
        return std::to_string(index);
    }

    /// At most a third of the width, so that a number fits next to it and below another.
    std::string fitted_label(std::string text) const {
        constexpr std::size_t least = 4;
        const std::size_t most = std::max(least, limits_.width / 3);
        if (limits_.width == 0 || display_width(text) <= most) return text;
        std::string_view rest = text;
        std::size_t width = 1;  // of the ellipsis
        while (true) {
            std::string_view next = rest;
            take_character(next);
            width += display_width(rest.substr(0, rest.size() - next.size()));
            if (width > most) break;
            rest = next;
        }
        return text.substr(0, text.size() - rest.size()) + "…";
    }

    template <class T>
    std::string number(T value) const {
        if constexpr (std::is_floating_point_v<T>) {
            // float32's lowest finite value, which libraries add to masked scores, has 39 digits.
            constexpr double widest = 1e10;
            if (std::isfinite(value) && std::abs(static_cast<double>(value)) >= widest)
                return scientific_text(value, decimals_.value_or(1));
            return fixed_text(value, decimals_.value_or(table_decimals));
        }
        return std::to_string(value);
    }

    Output& out_;
    const Report& report_;
    const NamedArray& array_;
    const std::optional<int> decimals_;
    const TableLimits& limits_;
    const MaskedCells is_masked_;
    const std::vector<std::size_t> shape_;
    const bool is_vector_;
    const std::size_t rows_, columns_;
    std::vector<std::span<const std::string>> labels_;  // by axis
};

std::size_t matrices_of(const NamedArray& array) {
    const std::vector<std::size_t> shape = shape_of(array);
    std::size_t count = 1;
    for (std::size_t axis = 2; axis < shape.size(); ++axis) count *= shape[axis - 2];
    return count;
}

bool is_next_token(const NamedArray& array) {
    return array.name.starts_with("next_token");
}

/// Of a model, if the layers have more matrices of one name than are shown: the first one of the
/// weights, or of all, and the next tokens.
bool write_summary(Output& out, const Report& report, const NumberStyle& style) {
    const NamedArray* first = nullptr;
    std::size_t all = 0, most = 0;
    std::map<std::string_view, std::size_t> counts;
    for (const NamedArray& array : report.arrays) {
        if (is_next_token(array)) continue;
        const std::string_view name = std::string_view(array.name).substr(0, array.name.find('.'));
        if (first == nullptr || (name == "attention_weights" && !first->name.starts_with(name)))
            first = &array;
        all += matrices_of(array);
        most = std::max(most, counts[name] += matrices_of(array));
    }
    if (report.layers.empty() || style.limits.matrices == 0 || most <= style.limits.matrices)
        return false;
    TableWriter(out, report, style, *first).write_first();
    for (const NamedArray& array : report.arrays)
        if (is_next_token(array)) {
            out << "\n";
            TableWriter(out, report, style, array).write();
        }
    out << "\n" << std::to_string(all - 1) << " more: --layers, --head, --heatmap, -o\n";
    return true;
}

}  // namespace

void write_table(Output& out, const Report& report, const NumberStyle& style) {
    if (write_summary(out, report, style)) return;
    bool first = true;
    for (const NamedArray& array : report.arrays) {
        if (!first) out << "\n";
        TableWriter(out, report, style, array).write();
        first = false;
    }
}

}  // namespace attn::io
