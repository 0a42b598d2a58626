// The gradients that a program compares with, and their tolerances.
#include <algorithm>

#include "cli/repro/program.hpp"
#include "core/check/their_array.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// A gradient has the axes of its operand in the program. That of a gate that all
/// heads share has one head.
void take_axes_of(const ProgramArray& operand, const Plan& plan, ProgramArray& gradient) {
    gradient.full = operand.full;
    gradient.shape = operand.shape;
    std::vector<double>& values = gradient.values;
    const std::size_t count = operand.values.size(), columns = operand.full.back();
    const bool is_gate = gradient.name == "grad_decay" || gradient.name == "grad_beta";
    if (is_gate && values.size() != count) {
        gradient.full[1] = 1;
        if (plan.shown.with_heads) gradient.shape[gradient.shape.size() - 3] = 1;
    } else if (is_gate && (plan.projects || plan.packed)) {
        const std::size_t heads = plan.kv_heads, rows = operand.full[2];
        const std::vector<double> joined = values;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t row = i / columns % rows, head = i / columns / rows;
            values[i] = joined[((head / heads * rows + row) * heads + head % heads) * columns +
                               i % columns];
        }
    } else if (values.size() != count) {
        std::size_t given = columns * values.size() / count;
        widen(values, given, columns);
    }
}

}  // namespace

void add_gradients(Repro& program, const Problem& problem, const Result& result, ThreadPool& pool) {
    for (const NamedArray& array : result.arrays) {
        const ArrayId id = *find_array(array.name);
        if ((id.row().needs & needs::backward) == 0) continue;
        const auto extent = shape_of_all_axes(program.plan, id);
        ProgramArray gradient{
            array.name, {extent.begin(), extent.end()}, io::shape_of(array), elements_of(array)};
        check_finite(gradient);
        const std::vector<double> bounds = tolerances_of(problem, id, gradient, pool).values;
        program.tolerances.push_back(
            {array.name + "_tolerance", {1}, {1}, {*std::ranges::max_element(bounds)}});
        if (gradient.shape.size() == 1) gradient.full = gradient.shape;
        if (const ProgramArray* operand = program.find(array.name.substr(array.name.find('_') + 1)))
            take_axes_of(*operand, program.plan, gradient);
        program.expected.push_back(std::move(gradient));
    }
}

}  // namespace attn::cli
