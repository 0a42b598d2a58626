// The table of arrays, row by row.
#include "core/operator/arrays.hpp"
#include "tests/support/drawn_layer.hpp"
#include "tests/support/planned.hpp"

namespace arrays_test {
namespace {

using namespace attn;

/// Keys of each query in the arrays that have an axis of them.
constexpr std::uint64_t top = 2;

bool needs_top(const ArrayRow& row) {
    return row.name == "top_keys" || row.name == "top_weights";
}

/// Operands are written in the shape in which they are given.
std::vector<std::size_t> shape_of_operand(const Operands& operands, const ArrayRow& row) {
    return operands[*std::ranges::find(operand_rows, row.name, &OperandRow::array)].shape();
}

TEST_CASE("arrays: each is written under its name, with the axes and sizes of its row") {
    ArraySet seen;
    for (std::uint32_t seed = 1; seed <= test::cases(100); ++seed) {
        test::DrawnLayer layer = test::drawn_layer(seed);
        if (const Shape inputs = layer.operands["inputs"].shape(); inputs.size() != 0) {
            layer.operands.weights.reset();
            layer.settings.init = Init::linear;  // others have parameters of other axes
            if (seed % 2 == 0) layer.operands.token_ids.assign(inputs[1], 3);
        }
        INFO(layer.words);
        const Plan plan = test::plan_of(layer.settings, layer.operands);
        for (std::size_t place = 0; place < emitted_arrays.size(); ++place) {
            const ArrayId id(place);
            if (!plan.has(id.row())) continue;
            Settings settings = layer.settings;
            settings.emit = {std::string(id.row().name)};
            if (needs_top(id.row())) settings.top = top;
            const Plan plan_of_row = test::plan_of(settings, layer.operands);
            INFO(id.row().name);
            const NamedArray array = test::answer_of(settings, layer.operands).arrays.at(0);
            CHECK(array.name == id.row().name);
            seen.add(id);
            if (id.row().is_operand()) {
                CHECK(test::shape_of_values(array) == shape_of_operand(layer.operands, id.row()));
                CHECK(array.axes.size() == test::shape_of_values(array).size());
                continue;
            }
            std::vector<std::string_view> axes;
            std::vector<std::size_t> sizes;
            for (std::size_t axis = 0; axis < id.row().axes.size(); ++axis)
                if (plan.shown.shows(id, axis)) {
                    axes.push_back(axis_name(id.row().axes[axis], plan.shown.separate_heads));
                    sizes.push_back(plan_of_row.size_of<std::uint64_t>(id.row().axes[axis]));
                }
            CHECK(array.axes == axes);
            CHECK(test::shape_of_values(array) == sizes);
        }
    }
    if (test::one_in == 1) CHECK(seen.size() == emitted_arrays.size());
}

TEST_CASE("arrays: the manual names each that can be emitted, and no step of a walk") {
    const std::string manual = test::manual_text();
    for (const ArrayRow& row : all_arrays) {
        INFO(row.name);
        const std::string name = "`" + std::string(row.name) + "`";
        CHECK((manual.find(name) != std::string::npos) == (row.from != From::trace));
    }
}

}  // namespace
}  // namespace arrays_test
