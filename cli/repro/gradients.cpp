// The gradients that a program compares with, and their tolerances.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "cli/repro/program.hpp"
#include "core/check/their_array.hpp"
#include "io/write/row_text.hpp"

namespace attn::cli {
namespace {

/// A gradient by an operand has the axes that the program's operand has. That of a gate that all
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

/// Moves every number by some units in the last place.
Operands moved(const Operands& given, double by, std::uint64_t state) {
    Operands copy = given;
    for (const OperandRow& row : operand_rows)
        if (!copy.is_boolean[row])
            copy[row].visit([&](auto& array) {
                for (auto& x : array) {
                    state = state * 6364136223846793005U + 1442695040888963407U;
                    x *=
                        static_cast<std::decay_t<decltype(x)>>(state >> 63U != 0 ? 1 + by : 1 - by);
                }
            });
    return copy;
}

}  // namespace

void add_gradients(Repro& program, const PlannedQuestion& planned, const Result& result,
                   ThreadPool& pool) {
    if (!program.plan.config.backward) return;
    const NumberType dtype = program.plan.config.dtype;
    constexpr std::uint64_t draws = 4;
    constexpr double ulps = 8, margin = 16;
    std::vector<std::vector<NamedArray>> others;
    for (std::uint64_t seed = 0; seed < draws; ++seed)
        others.push_back(compute(program.plan,
                                 moved(planned.question.operands, ulps * row_of(dtype).unit, seed),
                                 pool)
                             .arrays);
    std::vector<ProgramArray> gradients, tolerances;
    double largest = 0;
    for (const NamedArray& array : result.arrays) {
        const ArrayId id = *find_array(array.name);
        if ((id.row().needs & needs::backward) == 0) continue;
        const auto extent = shape_of_all_axes(program.plan, id);
        ProgramArray gradient{
            array.name, {extent.begin(), extent.end()}, io::shape_of(array), elements_of(array)};
        double error = 0;
        for (const std::vector<NamedArray>& other : others) {
            const std::vector<double> theirs = elements_of(*array_named(array.name, other));
            for (std::size_t i = 0; i < theirs.size(); ++i)
                error = std::max(error, std::abs(theirs[i] - gradient.values[i]));
        }
        for (const double x : gradient.values) largest = std::max(largest, std::abs(x));
        if (gradient.shape.size() == 1) gradient.full = gradient.shape;
        if (const ProgramArray* operand = program.find(array.name.substr(array.name.find('_') + 1)))
            take_axes_of(*operand, program.plan, gradient);
        check_finite(gradient);
        tolerances.push_back({array.name + "_tolerance", {1}, {1}, {margin * error}});
        gradients.push_back(std::move(gradient));
    }
    // What is 0 in one program may be the rounding error of a difference in another, and norms
    // divide these by numbers that may be small.
    const bool has_norm =
        program.input_norm || program.query_norm || program.key_norm || program.plan.config.qk_norm;
    const double of_zero = margin * (has_norm ? margin : 1) * row_of(dtype).unit * largest;
    for (ProgramArray& tolerance : tolerances)
        tolerance.values[0] =
            with_three_digits(tolerance.values[0] + of_zero + row_of(dtype).least_normal(), dtype);
    std::ranges::move(gradients, std::back_inserter(program.expected));
    std::ranges::move(tolerances, std::back_inserter(program.tolerances));
}

}  // namespace attn::cli
