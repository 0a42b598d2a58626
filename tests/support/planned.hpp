// Settings and operands to a plan and an answer, as the program goes.
#pragma once

#include <variant>

#include "core/base/torch_random.hpp"
#include "core/layer/layer.hpp"
#include "tests/support/support.hpp"

namespace attn::test {

/// Numbers of float32 up to `magnitude` in size.
inline Array<double> random_array(const Shape& shape, double magnitude, std::uint64_t seed) {
    Array<double> array = Array<double>::from_shape(shape);
    TorchGenerator generator(seed);
    for (double& value : array)
        value = static_cast<double>(generator.uniform<float>(-magnitude, magnitude));
    return array;
}

inline Plan plan_of(const Settings& settings, const Operands& operands,
                    const PlanOptions& options = {}) {
    return make_plan(settings, shapes_of(operands), options);
}

/// A result with its plan.
struct Answered : Result {
    Settings settings;
    Shapes shapes;

    const NamedArray& array(std::string_view name) const {
        const NamedArray* const found = array_named(name, arrays);
        if (found == nullptr) throw std::runtime_error("no array " + std::string(name));
        return *found;
    }
    /// An array of float64.
    const Array<double>& numbers(std::string_view name) const {
        return std::get<Array<double>>(array(name).values);
    }
};

inline Answered answer_of(const Settings& settings, Operands operands, std::size_t threads = 1) {
    const Plan plan = plan_of(settings, operands);
    ThreadPool pool(threads);
    return {compute(plan, std::move(operands), pool), plan.config, plan.shapes()};
}

inline Shape shape_of_values(const NamedArray& array) {
    return std::visit(
        [](const auto& values) { return Shape(values.shape().begin(), values.shape().end()); },
        array.values);
}

}  // namespace attn::test
