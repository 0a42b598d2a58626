#include "core/check/problem.hpp"

#include <string>
#include <utility>
#include <variant>

#include "core/base/layout.hpp"
#include "core/layer/layer.hpp"

namespace attn {
namespace {

/// A matrix or a batch of matrices as rows.
Numbers rows_of_operand(const RealArray& array, NumberType dtype) {
    Numbers numbers;
    numbers.value = rounded_doubles(array, dtype);
    numbers.columns = array.shape().back();
    numbers.rows = numbers.value.size() / std::max<std::size_t>(numbers.columns, 1);
    return numbers;
}

/// (batch, heads, len, d) with the heads side by side: (batch * len, heads * d).
Numbers heads_side_by_side(const RealArray& array, std::size_t batch, std::size_t heads,
                           NumberType dtype) {
    const std::size_t d = array.shape().back(), len = array.shape(array.dimension() - 2);
    const std::vector<double> from = rounded_doubles(array, dtype);
    Numbers numbers{batch * len, heads * d, std::vector<double>(from.size()), {}};
    copy_swapped(from.data(), {batch, heads, len, d}, numbers.value.data());
    return numbers;
}

template <class T>
ProjectionNumbers numbers_of_projection(const Projection<T>& p) {
    ProjectionNumbers numbers{p.groups() * p.d_out(), p.d_in(), p.groups(), p.in_out, {}, {}};
    numbers.weight.reserve(numbers.d_out * numbers.d_in);
    for (std::size_t g = 0; g < p.groups(); ++g)
        for (std::size_t o = 0; o < p.d_out(); ++o)
            for (std::size_t i = 0; i < p.d_in(); ++i)
                numbers.weight.push_back(static_cast<double>(p.at(g, o, i)));
    numbers.bias.assign(p.bias.begin(), p.bias.end());
    return numbers;
}

void take_weights(Problem& problem, const AnyLayerWeights& weights) {
    std::visit(
        [&](const auto& given) {
            const Projection<std::decay_t<decltype(*given->query.weight.data())>>* const three[] = {
                &given->query, &given->key, &given->value};
            for (std::size_t i = 0; i < 3; ++i)
                problem.projection[i] = numbers_of_projection(*three[i]);
            if (given->out) problem.projection[3] = numbers_of_projection(*given->out);
            problem.query_norm = given->query_norm;
            problem.key_norm = given->key_norm;
        },
        weights);
}

void take_sources(Problem& problem, const Operands& operands) {
    const Plan& plan = problem.plan;
    if (plan.projects) {
        problem.inputs = rows_of_operand(operands["inputs"], plan.config.dtype);
        problem.input_norm = operands.norm;
        Numbers& x = problem.source[0];
        x = problem.inputs;
        for (std::size_t row = 0; row < x.rows && operands.norm; ++row)
            normalise(*operands.norm,
                      std::span<double>(x.value.data() + row * x.columns, x.columns));
        problem.source[1] = row_of(plan.config.mode).context
                                ? rows_of_operand(operands["context"], plan.config.dtype)
                                : x;
        problem.source[2] = operands["value_input"].dimension() == 0
                                ? problem.source[1]
                                : rows_of_operand(operands["value_input"], plan.config.dtype);
        if (plan.independent_heads()) problem.heads_in = HeadsIn::copies;
        return;
    }
    const RealArray* const three[] = {&operands["query"], &operands["key"], &operands["value"]};
    if (!plan.packed) problem.heads_in = HeadsIn::axis;
    for (std::size_t i = 0; i < 3; ++i)
        problem.source[i] = plan.packed ? rows_of_operand(*three[i], plan.config.dtype)
                                        : heads_side_by_side(*three[i], plan.batch,
                                                             i == 0 ? plan.heads : plan.kv_heads,
                                                             plan.config.dtype);
}

Conventions conventions_of(const Problem& problem) {
    const Plan& plan = problem.plan;
    Conventions asked;
    for (std::size_t i = 0; i < asked.adds_bias.size(); ++i)
        asked.adds_bias[i] = problem.projection[i] && !problem.projection[i]->bias.empty();
    if (plan.rope.dims != 0)
        asked.rope = {plan.rope.pairs, plan.rope.base, plan.rope.dims, 0, plan.rope.scaling};
    asked.rope.by_ids = plan.query_positions.ids != nullptr;
    if (!asked.rope.by_ids)
        asked.rope.first_query = asked.rope.first_key = as_signed(plan.past_len);
    asked.qk_norm = plan.config.qk_norm;
    asked.scale = *plan.config.scale;
    asked.softcap = plan.config.softcap;
    asked.mask_mod = !plan.mask_formulas.empty();
    asked.head_scales = plan.config.head_scales;
    asked.relative_bias = plan.config.relative_bias != nullptr;
    asked.score_mod = bool(plan.config.score_mod);
    asked.prob_mod = bool(plan.config.prob_mod);
    asked.alibi.is_on = plan.config.alibi;
    asked.alibi.distance = plan.config.alibi_distance.value_or(AlibiDistance::absolute);
    asked.band.causal = plan.has_causal_rule() && !plan.config.rule;
    asked.band.offset = plan.offset.values();
    if (plan.has_window_rule()) {
        asked.band.left = plan.config.window[0];
        asked.band.right = plan.config.window[1];
    }
    asked.kv_lengths = plan.config.kv_lengths;
    for (std::size_t i = 0; i < asked.masks.size(); ++i)
        asked.masks[i] = {has_mask(problem, i, false) ? MaskUse::added : MaskUse::blocks,
                          plan.keeps_true()};
    if (plan.config.mask_method == MaskMethod::renormalize) asked.blocking = Blocking::renormalize;
    if (plan.normalizes()) asked.state.divisor = RowDivisor::retention;
    asked.sink = plan.config.sink;
    asked.softmax_plus = plan.config.softmax_plus;
    asked.drops = plan.config.dropout != 0;
    asked.backward.loss = plan.config.loss;
    return asked;
}

}  // namespace

double Problem::position(const RopeConvention& rope, Tensor tensor, std::size_t batch,
                         std::size_t token, std::size_t axis) const {
    const bool is_query = tensor == Tensor::query;
    const auto first = static_cast<double>(is_query ? rope.first_query : rope.first_key);
    if (rope.by_ids)
        return first + (is_query ? plan.query_positions : plan.key_positions)
                           .at(batch, plan.past_len + token, axis);
    return first + static_cast<double>(rope.period == 0 ? token : token % rope.period);
}

bool Problem::fits(const Conventions& c) const {
    const auto width = [&](Tensor of) { return of == Tensor::value ? plan.d_v : plan.d_k; };
    for (const Tensor slot : {Tensor::query, Tensor::key, Tensor::value}) {
        const Tensor used = c.used[index_of(slot)];
        if (head_count(used) != head_count(slot) || width(used) != width(slot) ||
            tokens(used) != tokens(slot))
            return false;
        const Tensor from = c.projected_from[index_of(slot)], by = c.projected_by[index_of(slot)];
        if (from == slot && by == slot) continue;
        const auto &as = projection[index_of(slot)], &with = projection[index_of(by)];
        if (!as || !with || as->d_out != with->d_out ||
            source[index_of(from)].columns != with->d_in || tokens(from) != tokens(slot))
            return false;
    }
    if ((c.split == HeadSplit::packed || c.split == HeadSplit::unpacked) &&
        (!plan.projects || plan.heads != plan.kv_heads || plan.d_k != plan.d_v ||
         tokens(Tensor::query) != tokens(Tensor::key) || plan.independent_heads()))
        return false;
    if (c.rope.pairs &&
        (c.rope.dims > plan.d_k || (c.rope.value_times != 0 && c.rope.dims > plan.d_v)))
        return false;
    return !c.transposed[index_of(Tensor::out)] || projection[index_of(Tensor::out)].has_value();
}

Problem make_problem(const Plan& plan, const Operands& operands, const Result& result) {
    Problem problem;
    problem.plan = plan;
    if (result.weights) take_weights(problem, *result.weights);
    take_sources(problem, operands);
    for (const OperandRow& row : operand_rows)
        if (!row.is_tokens()) problem.operands[row] = numbers_of_operand(plan, operands, row);
    if (const double p = plan.config.dropout; p != 0) {
        problem.kept_weight = 1 / (1 - p);
        std::visit(
            [&](const auto& values) {
                for (const auto x : values) problem.dropout_kept.push_back(x == 0 ? 0 : 1);
            },
            array_named("dropout_mask", result.arrays)->values);
    }
    problem.bonus = plan.bonus();
    problem.asked = conventions_of(problem);
    return problem;
}

Problem exact_question(const Plan& plan, const Operands& operands, ThreadPool& pool) {
    const bool draws = plan.draws_parameters();
    const bool drops = plan.config.dropout != 0;
    if (!draws && !drops) return make_problem(plan, operands, {{}, operands.weights});
    PlanOptions options;
    options.emit = std::vector<std::string>{drops ? "dropout_mask" : "queries"};
    if (drops) options.kernel = "reference";
    Settings settings = plan.config;
    settings.head.clear();  // the problem has all heads
    settings.backward = false;
    settings.loss.reset();
    OperandShapes shapes = plan.operands;
    Operands used = operands;
    for (const OperandRow& row : operand_rows)
        if (row.kind == OperandKind::result) {
            shapes[row].clear();
            used[row] = {};
        }
    const Plan drawing = make_plan(std::move(settings), shapes, options);
    return make_problem(plan, operands, compute(drawing, std::move(used), pool));
}

}  // namespace attn
