#include "core/check/their_array.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/tensor.hpp"

namespace attn {
namespace {

/// A part of an axis that another program may have as an axis of its own.
struct LayoutAxis {
    std::size_t axis, step, size;
    std::string_view name;
};

/// In the order of the question. `splits_heads`: the columns of context vectors are (heads, d_v).
std::vector<LayoutAxis> axes_of_array(const Plan& plan, ArrayId array, bool splits_heads) {
    const std::array<std::size_t, 4> sizes = shape_of_all_axes(plan, array);
    const std::array<Axis, 5>& axes = array.row().axes;
    const bool is_turned = plan.is_transposed(array);
    const auto name = [&](std::size_t axis) {
        const std::size_t in_row = is_turned && (axis == 2 || axis == 3) ? 5 - axis : axis;
        return axis_name(axes[in_row], plan.shown.separate_heads);
    };
    std::vector<LayoutAxis> list;
    for (std::size_t axis = 0; axis < 3; ++axis) list.push_back({axis, 1, sizes[axis], name(axis)});
    if (axes[4] != Axis::none) list.push_back({3, plan.d_v, sizes[3] / plan.d_v, name(3)});
    if (axes[4] != Axis::none)
        list.push_back({3, 1, plan.d_v, name(4)});
    else if (splits_heads) {
        list.push_back({3, plan.d_v, plan.heads, "heads"});
        list.push_back({3, 1, plan.d_v, "d_v"});
    } else {
        list.push_back({3, 1, sizes[3], name(3)});
    }
    std::vector<std::string_view> names;
    names.reserve(list.size());
    for (const LayoutAxis& axis : list) names.push_back(axis.name);
    std::vector<LayoutAxis> ordered;
    for (const std::size_t axis : plan.shown.order_of(array, names))
        if (list[axis].size != 1) ordered.push_back(list[axis]);
    return ordered;
}

std::vector<std::size_t> without_ones(std::vector<std::size_t> shape) {
    std::erase(shape, 1U);
    return shape;
}

/// A gradient has the shape in which its operand is given.
std::array<std::size_t, 4> shape_of_operand(const Plan& plan, ArrayId array) {
    std::array<std::size_t, 4> shape{1, 1, 1, 1};
    const std::vector<std::string_view> names = plan.computed_axes_of(array);
    for (std::size_t i = 0; i < names.size(); ++i)
        shape[names[i] == "batch"                          ? 0
              : names[i] == "heads"                        ? 1
              : names[i] == axis_name(array.row().axes[3]) ? 3
                                                           : 2] =
            plan.operand_shape(array.base().row())[i];
    return shape;
}

/// Groups of neighbouring axes whose sizes multiply to those of the shape: how many are in each;
/// empty if there are none.
std::vector<std::size_t> grouped(const std::vector<LayoutAxis>& axes,
                                 const std::vector<std::size_t>& order,
                                 const std::vector<std::size_t>& shape) {
    std::vector<std::size_t> groups;
    std::size_t next = 0;
    for (const std::size_t length : shape) {
        const std::size_t begin = next;
        std::size_t product = 1;
        while (product < length && next < order.size()) product *= axes[order[next++]].size;
        if (product != length) return {};
        groups.push_back(next - begin);
    }
    return next == order.size() ? groups : std::vector<std::size_t>{};
}

Layout layout_of(const std::vector<LayoutAxis>& axes, const std::vector<std::size_t>& order,
                 const std::vector<std::size_t>& groups) {
    Layout layout;
    bool has_rows = false;
    std::size_t stride = 1;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
        const LayoutAxis& part = axes[*at];
        layout.parts.push_back({part.axis, part.step, part.size, stride});
        stride *= part.size;
        // In order from the last axis on, so that columns are first as a rule.
        has_rows = has_rows || part.axis == 2;
        if (part.axis == 3 && part.step == 1) layout.is_transposed = has_rows;
    }
    std::size_t next = 0;
    for (const std::size_t count : groups) {
        std::string name;
        for (std::size_t i = 0; i < count; ++i, ++next)
            name += (i == 0 ? "" : " * ") + std::string(axes[order[next]].name);
        layout.axes.push_back(std::move(name));
    }
    return layout;
}

}  // namespace

double PrintedDigits::error(double value) const {
    if (step != 0) return step;
    constexpr double half = 0.5 + 0x1p-20;  // decimals of ties are rounded to float64
    if (value == 0 || !std::isfinite(value)) return half * std::pow(10.0, -decimals);
    const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
    return half * std::pow(10.0, std::max(-decimals, exponent + 1 - significant));
}

std::size_t Layout::offset(const std::array<std::size_t, 4>& index) const {
    std::size_t sum = 0;
    for (const Part& part : parts) sum += index[part.axis] / part.step % part.size * part.stride;
    return sum;
}

std::array<std::size_t, 4> shape_of_all_axes(const Plan& plan, ArrayId array) {
    const std::array<Axis, 5>& axes = array.row().axes;
    if (array.base().row().is_operand()) return shape_of_operand(plan, array);
    std::array<std::size_t, 4> shape{};
    for (std::size_t axis = 0; axis < 4; ++axis)
        shape[axis] = static_cast<std::size_t>(plan.size_of<std::uint64_t>(axes[axis]));
    shape[3] *= static_cast<std::size_t>(plan.size_of<std::uint64_t>(axes[4]));
    if (plan.is_transposed(array)) std::swap(shape[2], shape[3]);
    if (plan.shown.averages(array)) shape[1] = 1;
    return shape;
}

std::vector<Layout> layouts_of(const Plan& plan, ArrayId array,
                               const std::vector<std::size_t>& shape) {
    std::vector<Layout> layouts;
    const std::vector<std::size_t> theirs = without_ones(shape);
    const auto add_orders = [&](const std::vector<LayoutAxis>& axes, bool splits_heads) {
        std::vector<std::size_t> order(axes.size());
        std::iota(order.begin(), order.end(), 0);
        do {
            const std::vector<std::size_t> groups = grouped(axes, order, theirs);
            if (groups.empty() && !axes.empty()) continue;
            if (axes.empty() && !theirs.empty()) continue;
            // Otherwise columns of other heads would pass for another order of axes.
            const bool is_split = std::all_of(groups.begin(), groups.end(),
                                              [](std::size_t count) { return count == 1; });
            if (splits_heads && !is_split) continue;
            layouts.push_back(layout_of(axes, order, groups));
        } while (std::next_permutation(order.begin(), order.end()));
    };
    add_orders(axes_of_array(plan, array, false), false);
    if (!layouts.empty() && theirs == without_ones(plan.shape_of(array)))
        layouts.front().axes.clear();
    const bool has_split = array == "context_vectors" && !*plan.config.out_proj &&
                           !plan.shown.separate_heads && plan.heads > 1;
    if (has_split) add_orders(axes_of_array(plan, array, true), true);
    // Programs store the weights of projections either way.
    if (array.row().is_parameter())
        for (Layout& layout : layouts) layout.is_transposed = false;
    const bool has_own = !layouts.empty() && layouts.front().axes.empty();
    std::stable_sort(layouts.begin() + (has_own ? 1 : 0), layouts.end(),
                     [](const Layout& a, const Layout& b) { return a.rank() < b.rank(); });
    return layouts;
}

std::vector<std::string> own_axes(const Plan& plan, ArrayId array) {
    const std::vector<std::string_view> names = plan.axes_of(array);
    const Shape shape = plan.shape_of(array);
    std::vector<std::string> axes;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (shape[i] != 1) axes.emplace_back(names[i]);
    return axes;
}

std::string axes_text(const std::vector<std::string>& axes) {
    std::string text;
    for (const std::string& axis : axes) text += (text.empty() ? "" : ", ") + axis;
    return "(" + text + ")";
}

std::string unfit_text(const Plan& plan, ArrayId array, const std::vector<std::size_t>& shape) {
    std::string text =
        "shape " + shape_text(shape) + " does not fit " + shape_text(plan.shape_of(array));
    // The axis that has fewer entries is not merged with another.
    const auto fits = [&](const Plan& other, std::string_view axis) {
        const std::vector<Layout> layouts = layouts_of(other, array, shape);
        return std::any_of(layouts.begin(), layouts.end(), [&](const Layout& layout) {
            return layout.axes.empty() || axis.empty() ||
                   std::find(layout.axes.begin(), layout.axes.end(), axis) != layout.axes.end();
        });
    };
    const auto product = [](const auto& sizes) {
        return std::accumulate(sizes.begin(), sizes.end(), std::size_t{1}, std::multiplies<>());
    };
    // How many of `all` the array has, if it differs in nothing else.
    const auto part_of = [&](std::size_t all) {
        return product(shape) * all / product(shape_of_all_axes(plan, array));
    };
    Plan fewer = plan;
    fewer.rows = part_of(plan.rows);
    if (fewer.rows > 0 && fewer.rows < plan.rows &&
        fits(fewer, fewer.rows == 1 ? "" : axis_name(array.row().axes[2]))) {
        const std::size_t begin = plan.first_query, end = begin + plan.rows;
        text += concat("; if it has the first rows, expected --rows ", begin, ":",
                       begin + fewer.rows, "; the last, --rows ", end - fewer.rows, ":", end);
    }
    fewer = plan;
    std::string heads;
    const std::size_t count = plan.shown.heads.empty() ? part_of(plan.heads) : plan.heads;
    for (std::size_t head = 0; head < count && count < plan.heads; ++head) {
        fewer.shown.heads.push_back(head);
        fewer.shown.key_heads.push_back(head / (plan.heads / plan.kv_heads));
        heads += concat(heads.empty() ? "" : ",", head);
    }
    if (!heads.empty() && plan.shown.with_heads && fits(fewer, ""))
        text += concat("; if it has the first ", count == 1 ? "head" : "heads",
                       ", expected --head ", heads);
    // nn.MultiheadAttention returns the mean over the heads by default.
    fewer = plan;
    fewer.shown.average_heads = true;
    if (fewer.shown.averages(array) && fits(fewer, ""))
        text += "; as the mean over the heads it fits --average-heads";
    return text;
}

TheirArray in_layout(const GivenArray& given, const Layout& layout, const Plan& plan,
                     NumberType type) {
    TheirArray array{given.id, shape_of_all_axes(plan, given.id), {}, type, given.printed};
    if (given.words && given.words->is_integer())
        array.printed = PrintedDigits{.step = given.words->step()};
    else if (given.words)
        array.type = given.words->kind;
    array.values.reserve(given.values.size());
    const auto [batch, heads, rows, columns] = array.shape;
    for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t r = 0; r < rows; ++r)
                for (std::size_t c = 0; c < columns; ++c)
                    array.values.push_back(given.values[layout.offset({b, h, r, c})]);
    return array;
}

}  // namespace attn
