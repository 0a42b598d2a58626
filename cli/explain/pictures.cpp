// The heat maps of a page that shows pictures.
#include <algorithm>
#include <memory>
#include <type_traits>

#include "cli/explain/explanation.hpp"
#include "core/layer/mask_rows.hpp"
#include "core/layer/operands.hpp"
#include "io/plot/picture_formats.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// Cells in each direction; larger matrices are pooled.
constexpr io::HeatMapLimits map_limits{64, 64};

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

double cell(const NamedArray& matrix, std::size_t row, std::size_t column) {
    return element(matrix, row * io::shape_of(matrix)[1] + column);
}

/// Masked cells: by the mask of all queries, or else those of weight 0 that the rules of the
/// settings mask.
io::IsMasked masked_cells(const Explanation& e, const NamedArray& weights, std::size_t head) {
    if (const NamedArray* all = e.maps.find("mask")) {
        auto mask = std::make_shared<NamedArray>(matrix_of(*all, e.batch, head, e.plan.heads));
        return [mask](std::size_t, std::size_t, std::size_t query, std::size_t key) {
            return cell(*mask, query, key) == 0;
        };
    }
    auto rules = std::make_shared<const Mask>(settings_mask(e.plan));
    return [rules, &weights, batch = e.batch, head](std::size_t, std::size_t, std::size_t query,
                                                    std::size_t key) {
        return !rules->allows(batch, head, query, key) && cell(weights, query, key) == 0;
    };
}

}  // namespace

void Explanation::draw(std::string_view name, std::size_t head, const std::string& caption) {
    if (!page->shows_pictures()) return;
    const ArrayRow& row = ArrayId(*find_array(name)).row();
    const NamedArray* array = (row.counts_queries_and_keys() ? maps : arrays).find(name);
    if (array == nullptr || io::shape_of(*array).size() < 2) return;
    io::Report report;
    report.query_labels = labels.queries;
    report.key_labels = labels.keys;
    report.title_start = source.layer.empty() ? std::string(row_of(plan.mode).name) : source.layer;
    const bool of_head =
        std::find(array->axes.begin(), array->axes.end(), "heads") != array->axes.end();
    if (of_head) report.title_start += ", head " + std::to_string(head);
    report.title_start += "  ";
    NamedArray matrix = matrix_of(*array, batch, head, plan.heads);
    // A file's numbers are read as float64, but have the decimals of their own dtype.
    if (plan.dtype == Dtype::float32)
        if (const auto* wide = std::get_if<Array<double>>(&matrix.values))
            matrix.values = Array<float>(*wide);
    io::HeatMap map = io::make_heat_map(report, matrix, masked_cells(*this, matrix, head),
                                        io::ColorScale::automatic, map_limits);
    if (row.is_parameter()) {  // whose axes may be in either order
        map.row_axis = matrix.axes.front();
        map.column_axis = matrix.axes.back();
        return page->picture(io::svg_element({map}), caption + ".");
    }
    map.row_labels.at(query() / map.row_step).insert(0, "▶ ");
    const std::string svg = io::svg_element({map});
    // Of many rows, only some have labels.
    const bool is_marked = svg.find(">▶ ") != std::string::npos;
    page->picture(svg, caption + "; row " + std::to_string(query()) +
                           (is_marked ? ", marked ▶, is this one's." : " is this one's."));
}

}  // namespace attn::cli
