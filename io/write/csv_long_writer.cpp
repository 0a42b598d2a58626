// A result's arrays as CSV with one line per element, for data frames and databases.
#include <algorithm>

#include "io/read/result_view.hpp"
#include "io/text/number_text.hpp"
#include "io/write/output_formats.hpp"
#include "io/write/row_text.hpp"

namespace attn::io {
namespace {

/// A column of an array: one text in all lines, or the index on an axis or its label.
struct LongColumn {
    std::string name = {}, text = {};
    std::optional<std::size_t> axis = {};
    std::size_t first = 0;                  // added to the index
    std::vector<std::string> entries = {};  // in place of the index, or empty
};

/// The columns of axes that have another name.
constexpr std::pair<std::string_view, std::string_view> axis_columns[] = {
    {"heads", "head"}, {"tokens", "position"}, {"q_len", "query"}, {"kv_len", "key"}};

constexpr std::string_view of_labels = "_token";

/// The array's name, its layer, its axes and their labels.
std::vector<LongColumn> columns_of(const Report& report, const NamedArray& array) {
    const auto of_layer = array.layer ? split_layer_name(array.name) : std::nullopt;
    std::vector<LongColumn> columns{{"array", of_layer ? of_layer->array : array.name}}, labelled;
    if (array.layer) columns.push_back({"layer", std::to_string(*array.layer)});
    for (std::size_t axis = 0; axis < array.axes.size(); ++axis) {
        LongColumn index{std::string(array.axes[axis])};
        for (const auto& [name, column] : axis_columns)
            if (name == array.axes[axis]) index.name = column;
        index.axis = axis;
        if (index.name == "query") index.first = report.first_query;
        if (index.name == "head" && has_chosen_heads(report, array))
            for (const std::size_t head : report.heads)
                index.entries.push_back(std::to_string(head));
        LongColumn label{index.name + std::string(of_labels)};
        const std::span<const std::string> labels = labels_of(report, array, axis);
        refuse_zeros(labels);
        for (const std::string& text : labels) label.entries.push_back(quoted_field(text));
        if (!labels.empty()) label.axis = axis;
        // Other records of a batch may have labels of the tokens.
        const bool may_have =
            !report.record.empty() && index.name != array.axes[axis] && index.name != "head";
        if (!labels.empty() || may_have) labelled.push_back(std::move(label));
        columns.push_back(std::move(index));
    }
    std::ranges::move(labelled, std::back_inserter(columns));
    return columns;
}

/// The text before the value of an element.
void append_start(TextBuffer& text, const std::vector<LongColumn>& columns,
                  const std::vector<std::size_t>& shape, std::size_t element) {
    std::array<std::size_t, 8> index{};
    for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
        index[axis] = element % shape[axis];
    for (const LongColumn& column : columns) {
        const std::size_t at = column.axis ? index[*column.axis] : 0;
        if (!column.axis)
            text += column.text;
        else if (!column.entries.empty())
            text += column.entries[at];
        else
            text.end_at(write_number(text.space(max_number_length),
                                     static_cast<std::int64_t>(column.first + at), {}));
        text += ',';
    }
}

}  // namespace

void write_csv_long(Output& out, const Report& report, const NumberStyle& style) {
    std::vector<std::vector<LongColumn>> all;
    std::vector<std::string> names;
    RowFormat format{"", "NaN", "inf", "-inf", style.decimals, {}, {}};
    format.are_elements = true;
    for (const NamedArray& array : report.arrays) {
        all.push_back(columns_of(report, array));
        if (!array.stream && std::holds_alternative<Array<std::int64_t>>(array.values)) continue;
        format.integer = [](char* at, std::int64_t number) {
            return std::ranges::copy(std::string_view(".0"), write_number(at, number, {})).out;
        };
    }
    for (const bool are_labels : {false, true})
        for (const std::vector<LongColumn>& columns : all)
            for (const LongColumn& column : columns)
                if (column.name.ends_with(of_labels) == are_labels &&
                    std::ranges::count(names, column.name) == 0)
                    names.push_back(column.name);
    const auto is_other = [&](const auto& columns) { return columns[0].text != all[0][0].text; };
    if (std::ranges::none_of(all, is_other)) names.erase(names.begin());
    for (const auto& [name, text] : report.record) out << name << ",";
    for (const std::string& name : names) out << name << ",";
    out << "value\n";
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<LongColumn> columns;
        for (const auto& [name, text] : report.record) columns.push_back({name, text});
        for (const std::string& name : names) {
            const auto found = std::ranges::find(all[i], name, &LongColumn::name);
            columns.push_back(found == all[i].end() ? LongColumn{} : *found);
        }
        format.open = [&](TextBuffer& text, const auto& shape, std::size_t element) {
            append_start(text, columns, shape, element);
        };
        format.close = [](TextBuffer& text, const auto&, std::size_t) { text += '\n'; };
        write_rows(out, report.arrays[i], format, report.workers);
    }
}

}  // namespace attn::io
