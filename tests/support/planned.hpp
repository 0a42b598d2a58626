// Settings and operands to a plan and an answer, as the program goes.
#pragma once

#include <utility>

#include "core/layer/layer.hpp"

namespace attn::test {

inline Plan plan_of(const Settings& settings, const Operands& operands, const Ask& ask = {}) {
    return make_plan(settings, shapes_of(operands), ask);
}

/// A result with its plan.
struct Answered : Result {
    Settings settings;
    Shapes shapes;
};

inline Answered answer_of(const Settings& settings, Operands operands, ThreadPool& pool,
                          const Ask& ask = {}) {
    const Plan plan = plan_of(settings, operands, ask);
    return {compute(plan, std::move(operands), pool), plan.config, plan.shapes()};
}

}  // namespace attn::test
