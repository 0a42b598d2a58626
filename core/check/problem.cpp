#include "core/check/problem.hpp"

#include <string>
#include <utility>
#include <variant>

#include "core/base/layout.hpp"
#include "core/layer/layer.hpp"

namespace attn {
namespace {

std::vector<double> rounded_doubles(const RealArray& array, NumberType dtype) {
    if (array.dimension() == 0) return {};
    RealArray copy = array;
    Array<double> numbers = copy.take<double>();
    std::vector<double> rounded(numbers.size());
    std::transform(numbers.begin(), numbers.end(), rounded.begin(), row_of(dtype).round);
    return rounded;
}

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
        problem.source[2] = problem.source[1];
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

/// Additive masks are rounded to the type: those below its range block keys. Boolean ones become 0
/// and 1.
MaskNumbers numbers_of_mask(const Operands& operands, OperandId operand, NumberType dtype) {
    const auto& mask = operands[operand].in<double>();
    const bool is_boolean = operands.is_boolean[operand];
    const bool of_keys = operand == OperandId("key_padding_mask");
    MaskNumbers numbers{{1, 1, 1, 1}, {mask.begin(), mask.end()}, is_boolean};
    for (double& x : numbers.values) x = is_boolean ? (x != 0 ? 1 : 0) : row_of(dtype).round(x);
    if (of_keys) {
        const std::size_t keys = mask.shape().back();
        numbers.shape = {mask.size() / std::max<std::size_t>(keys, 1), 1, 1, keys};
    } else {
        std::copy_backward(mask.shape().begin(), mask.shape().end(), numbers.shape.end());
    }
    return numbers;
}

/// A gate of linear attention as (batch, kv_heads, tokens, columns of a head).
std::vector<double> gate_of_problem(const Plan& plan, const RealArray& array,
                                    const std::vector<double>& constants, std::size_t& columns) {
    const std::size_t heads = plan.kv_heads, tokens = plan.q_len;
    std::vector<double> gate;
    columns = 1;
    if (!constants.empty()) {
        for (std::size_t i = 0; i < plan.batch * heads; ++i)
            gate.insert(
                gate.end(), tokens,
                row_of(plan.config.dtype).round(constants[constants.size() == 1 ? 0 : i % heads]));
        return gate;
    }
    std::vector<double> given = rounded_doubles(array, plan.config.dtype);
    if (given.empty()) return gate;
    if (!plan.projects && !plan.packed) {  // heads are an axis
        columns = given.size() / (plan.batch * heads * tokens);
        return given;
    }
    const std::size_t width = given.size() / (plan.batch * tokens);
    const bool is_shared = width == 1;
    if (!is_shared) columns = width / heads;
    for (std::size_t b = 0; b < plan.batch; ++b)
        for (std::size_t h = 0; h < heads; ++h)
            for (std::size_t t = 0; t < tokens; ++t) {
                const double* const row = given.data() + (b * tokens + t) * width;
                const double* const first = row + (is_shared ? 0 : h * columns);
                gate.insert(gate.end(), first, first + columns);
            }
    return gate;
}

Conventions conventions_of(const Problem& problem) {
    const Plan& plan = problem.plan;
    Conventions asked;
    for (std::size_t i = 0; i < asked.adds_bias.size(); ++i)
        asked.adds_bias[i] = problem.projection[i] && !problem.projection[i]->bias.empty();
    if (plan.rope.dims != 0)
        asked.rope = {plan.rope.pairs, plan.rope.base, plan.rope.dims, 0, plan.rope.scaling};
    asked.rope.first_query = asked.rope.first_key = as_signed(plan.past_len);
    asked.scale = *plan.config.scale;
    asked.softcap = plan.config.softcap;
    asked.alibi.is_on = plan.config.alibi;
    asked.band.causal = *plan.config.causal && !plan.config.rule;
    asked.band.offset = plan.offset.values();
    if (!plan.config.window.empty()) {
        asked.band.left = plan.config.window[0];
        asked.band.right = plan.config.window[1];
    }
    asked.kv_lengths = plan.config.kv_lengths;
    for (std::size_t i = 0; i < asked.masks.size(); ++i)
        asked.masks[i] = {has_mask(problem, i, false) ? MaskUse::added : MaskUse::blocks,
                          plan.keeps_true()};
    if (plan.config.mask_method == MaskMethod::renormalize) asked.blocking = Blocking::renormalize;
    asked.sink = plan.config.sink;
    asked.drops = plan.config.dropout != 0;
    return asked;
}

}  // namespace

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
    const NumberType dtype = plan.config.dtype;
    Problem problem;
    problem.plan = plan;
    if (result.weights) take_weights(problem, *result.weights);
    take_sources(problem, operands);
    problem.past_key = rounded_doubles(operands["past_key"], dtype);
    problem.past_value = rounded_doubles(operands["past_value"], dtype);
    if (operands["mask"].dimension() != 0)
        problem.masks[0] = numbers_of_mask(operands, "mask", dtype);
    if (operands["key_padding_mask"].dimension() != 0)
        problem.masks[1] = numbers_of_mask(operands, "key_padding_mask", dtype);
    if (plan.config.rule) {
        RecurrenceNumbers& taken = problem.recurrence;
        std::size_t one = 1;
        taken.log_decay =
            gate_of_problem(plan, operands["decay"], plan.config.decay, taken.decay_columns);
        taken.beta = gate_of_problem(plan, operands["beta"], plan.config.beta, one);
        taken.past_state = rounded_doubles(operands["past_state"], dtype);
    }
    if (const double p = plan.config.dropout; p != 0) {
        problem.kept_weight = 1 / (1 - p);
        std::visit(
            [&](const auto& values) {
                for (const auto x : values) problem.dropout_kept.push_back(x == 0 ? 0 : 1);
            },
            array_named("dropout_mask", result.arrays)->values);
    }
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
    const Plan drawing = make_plan(std::move(settings), plan.operands, options);
    Operands used = operands;
    return make_problem(plan, operands, compute(drawing, std::move(used), pool));
}

}  // namespace attn
