// The maps that a page with pictures has beside its words.
#include <algorithm>
#include <type_traits>

#include "cli/explain/walk.hpp"
#include "io/plot/svg.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// Cells each way; more are pooled.
constexpr io::HeatMapLimits walk_limits{64, 64};

/// The matrix of one batch entry and head.
NamedArray matrix_of(const NamedArray& array, std::size_t batch, std::size_t head,
                     std::size_t heads) {
    return std::visit(
        [&](const auto& values) {
            const std::size_t rank = values.dimension();
            std::size_t at = 0;
            for (std::size_t i = 0; i + 2 < rank; ++i) {
                const std::size_t size = values.shape(i);
                at = at * size + (array.axes[i] == "batch" ? batch : head * size / heads);
            }
            using Values = std::decay_t<decltype(values)>;
            Values matrix = Values::from_shape({values.shape(rank - 2), values.shape(rank - 1)});
            std::copy_n(values.data() + at * matrix.size(), matrix.size(), matrix.data());
            return NamedArray{
                array.name, std::move(matrix), {array.axes[rank - 2], array.axes[rank - 1]}};
        },
        array.values);
}

}  // namespace

void Walk::draw(std::string_view name, std::size_t head, const std::string& caption) {
    if (!page->shows_pictures()) return;
    const NamedArray* array = maps.find(name);
    if (array == nullptr) array = arrays.find(name);
    if (array == nullptr || io::shape_of(*array).size() < 2) return;
    io::Report report;
    report.query_labels = labels.queries;
    report.key_labels = labels.keys;
    report.title_start = std::string(row_of(plan.mode).name);
    const bool of_head =
        std::find(array->axes.begin(), array->axes.end(), "heads") != array->axes.end();
    if (of_head) report.title_start += ", head " + std::to_string(head);
    report.title_start += "  ";
    const NamedArray* mask = maps.find("mask");
    io::IsBlocked is_blocked;
    NamedArray seen;
    if (mask != nullptr) {
        seen = matrix_of(*mask, batch, head, plan.heads);
        is_blocked = [&seen](std::size_t, std::size_t, std::size_t query, std::size_t key) {
            return std::visit(
                [&](const auto& values) {
                    return values.data()[query * values.shape(1) + key] == 0;
                },
                seen.values);
        };
    }
    io::HeatMap map = io::make_heat_map(report, matrix_of(*array, batch, head, plan.heads),
                                        is_blocked, io::ColorScale::automatic, walk_limits);
    const ArrayRow& known = ArrayId(*find_array(array->name)).row();
    const std::size_t row = query() / map.row_step;
    if (known.is_parameter()) {  // which lie either way round
        map.row_axis = array->axes[array->axes.size() - 2];
        map.column_axis = array->axes.back();
    } else if (row < map.rows) {
        map.row_labels[row].insert(0, "▶ ");
    }
    page->picture(io::svg_element({map}), caption);
}

}  // namespace attn::cli
