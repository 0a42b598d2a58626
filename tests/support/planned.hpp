// Settings and operands to a plan and an answer, as the program goes.
#pragma once

#include <utility>

#include "core/layer/layer.hpp"

namespace attn::test {

inline Plan plan_of(const Settings& settings, const Operands& operands,
                    const PlanOptions& options = {}) {
    return make_plan(settings, shapes_of(operands), options);
}

/// A result with its plan.
struct Answered : Result {
    Settings settings;
    Shapes shapes;
};

inline Answered answer_of(const Settings& settings, Operands operands, ThreadPool& pool,
                          const PlanOptions& options = {}) {
    const Plan plan = plan_of(settings, operands, options);
    return {compute(plan, std::move(operands), pool), plan.config, plan.shapes()};
}

}  // namespace attn::test
