// The table of arrays, row by row.
#include "core/operator/arrays.hpp"

#include <doctest/doctest.h>

#include "tests/support/planned.hpp"
#include "tests/support/support.hpp"

namespace arrays_test {

using namespace attn;

namespace {

struct Question {
    Settings settings;
    Operands operands;
};

/// A layer that has everything, and the bare operator.
std::vector<Question> questions() {
    Question layer;
    layer.settings.mode = Mode::multihead;
    layer.settings.heads = 6;
    layer.settings.kv_heads = 3;
    layer.settings.d_out = 12;
    layer.settings.d_v = 18;
    layer.settings.qkv_bias = true;
    layer.settings.mask_method = MaskMethod::renormalize;
    layer.operands.inputs = test::random_array({2, 5, 7}, 1, 1);
    layer.operands.token_ids = {3, 1, 4, 1, 5};
    layer.operands.norm = InputNorm{true, std::vector<double>(7, 1.0), {}, 1e-5};
    Question independent = layer;
    independent.settings.style = Style::wrapper;
    independent.settings.kv_heads.reset();
    independent.settings.d_out = independent.settings.d_v = 4;
    independent.settings.d_k = 3;
    Question bare;
    bare.settings.mode = Mode::sdpa;
    bare.operands.query = test::random_array({2, 6, 5, 4}, 1, 1);
    bare.operands.key = test::random_array({2, 3, 7, 4}, 1, 1);
    bare.operands.value = test::random_array({2, 3, 7, 8}, 1, 1);
    bare.operands.past_key = test::random_array({2, 3, 2, 4}, 1, 1);
    bare.operands.past_value = test::random_array({2, 3, 2, 8}, 1, 1);
    bare.operands.mask = test::random_array({2, 6, 5, 9}, 1, 1);
    bare.operands.key_padding_mask = test::random_array({2, 9}, 1, 1);
    Question linear = bare;
    linear.settings.mode = Mode::linear;
    linear.operands.query = test::random_array({2, 6, 7, 4}, 1, 1);
    linear.operands.past_key = linear.operands.past_value = {};
    linear.operands.mask = linear.operands.key_padding_mask = {};
    linear.settings.rule = Rule::gated_delta;
    linear.operands.past_state = test::random_array({2, 3, 4, 8}, 1, 1);
    linear.operands.decay = test::random_array({2, 3, 7, 4}, 1, 1);
    linear.operands.beta = test::random_array({2, 3, 7, 1}, 1, 1);
    Question cross = layer;
    cross.settings.mode = Mode::cross;
    cross.settings.heads = 1;
    cross.settings.kv_heads.reset();
    cross.settings.d_v = cross.settings.d_out = 12;
    cross.settings.mask_method = {};
    cross.operands.token_ids = {};
    cross.operands.norm.reset();
    cross.operands.context = test::random_array({2, 4, 7}, 1, 1);
    return {layer, independent, bare, linear, cross};
}

/// Keys of each query in the arrays that have an axis of them.
constexpr std::uint64_t top = 2;

bool needs_top(const ArrayRow& row) {
    return row.name == "top_keys" || row.name == "top_weights";
}

NamedArray emitted(Question question, const ArrayRow& row) {
    question.settings.emit = {std::string(row.name)};
    if (needs_top(row)) question.settings.top = top;
    const Result result = test::answer_of(question.settings, question.operands);
    REQUIRE(result.arrays.size() == 1);
    return result.arrays.front();
}

/// Operands are written in the shape in which they are given.
std::vector<std::size_t> shape_of_operand(const Operands& operands, const ArrayRow& row) {
    for (const RealOperandRow& reals : real_operand_rows)
        if (row.name == reals.key) return (operands.*reals.reals).shape();
    const Array<double>& mask = row.name == "attn_mask" ? operands.mask : operands.key_padding_mask;
    return {mask.shape().begin(), mask.shape().end()};
}

}  // namespace

TEST_CASE("arrays: each is written under its name, with the axes and sizes of its row") {
    std::size_t written = 0;
    ArraySet seen;
    for (const Question& question : questions()) {
        const Plan plan = test::plan_of(question.settings, question.operands);
        for (std::size_t place = 0; place < emitted_arrays.size(); ++place) {
            const ArrayId id(place);
            if (!plan.has(id.row())) continue;
            Settings settings = question.settings;
            settings.emit = {std::string(id.row().name)};
            if (needs_top(id.row())) settings.top = top;
            const Plan plan_of_row = test::plan_of(settings, question.operands);
            INFO(id.row().name);
            const NamedArray array = emitted(question, id.row());
            CHECK(array.name == id.row().name);
            std::vector<std::string_view> axes;
            std::vector<std::size_t> sizes;
            for (std::size_t axis = 0; axis < id.row().axes.size(); ++axis)
                if (plan.shown.shows(id, axis)) {
                    axes.push_back(axis_name(id.row().axes[axis], plan.shown.separate_heads));
                    sizes.push_back(plan_of_row.size_of<std::uint64_t>(id.row().axes[axis]));
                }
            CHECK(array.axes == axes);
            CHECK(test::shape_of_values(array) ==
                  (id.row().is_operand() ? shape_of_operand(question.operands, id.row()) : sizes));
            seen.add(id);
            ++written;
        }
    }
    CHECK(seen.size() == emitted_arrays.size());
    CHECK(written > seen.size());
}

TEST_CASE("arrays: the manual names each that can be emitted, and no step of a walk") {
    const std::string manual = test::manual_text();
    for (const ArrayRow& row : all_arrays) {
        INFO(row.name);
        const std::string name = "`" + std::string(row.name) + "`";
        CHECK((manual.find(name) != std::string::npos) == (row.from != From::trace));
    }
}

}  // namespace arrays_test
