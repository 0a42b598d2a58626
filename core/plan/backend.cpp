// A new fused kernel is a row of kernels/dispatch.cpp.
#include "core/plan/backend.hpp"

#include <utility>

#include "core/fused/attend_fused.hpp"
#include "core/fused/backward_fused.hpp"
#include "core/fused/kernel_formula.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/linear/linear.hpp"
#include "core/plan/resolve.hpp"

namespace attn {
namespace {

template <class T>
void keep_streams(const kernels::Kernel& kernel, AttentionCall<T> used, Recorder& recorder,
                  ThreadPool& pool) {
    const auto call = std::make_shared<const AttentionCall<T>>(std::move(used));
    const auto record = [&](ArrayId array, bool scores) {
        if (recorder.records(array))
            recorder.keep_stream(
                array, stream_weights(kernel, call, scores, recorder.chosen_heads(array), pool));
    };
    record("attention_weights", false);
    record("scores", true);
}

template <class T>
void attend_by_kernel(const Plan& plan, AttentionCall<T>&& call, const HeadRows<T>& context,
                      Recorder& recorder, ThreadPool& pool) {
    const kernels::Kernel& kernel = *plan.backend->kernel;
    const std::array<std::size_t, 4>& q = call.query.shape();
    const std::vector<std::size_t>* const chosen = recorder.chosen_heads("attention_weights");
    const std::array<std::size_t, 4> of_heads{q[0], q[1], q[2], plan.d_v},
        of_weights{q[0], chosen == nullptr ? q[1] : chosen->size(), q[2], plan.keys};
    FusedOutputs<T> outputs{context};
    outputs.heads = chosen;
    AllHeads<T> heads(recorder, "head_outputs", {q[0], q[1], q[2], plan.d_v});
    if (heads.data() != nullptr) outputs.context = rows_of_heads(heads.data(), of_heads);
    Tensor4<T> averaged;
    const bool averages = recorder.averages("attention_weights");
    if (averages) {
        averaged = Tensor4<T>::from_shape(of_weights);
        outputs.weights = averaged.data();
    } else if (!plan.streams) {
        outputs.weights = recorder.allocate<T>("attention_weights", of_weights);
    }
    if (!plan.streams) outputs.scores = recorder.allocate<T>("scores", of_weights);
    AllHeads<T> sums(recorder, "logsumexp", {q[0], q[1], q[2], 1});
    outputs.logsumexp = sums.data();
    const bool any = outputs.context.data != nullptr || outputs.weights != nullptr ||
                     outputs.scores != nullptr || outputs.logsumexp != nullptr;
    if (any || plan.needs_context()) attend_fused(kernel, call, outputs, pool);
    if (heads.data() != nullptr) copy_heads<T>(heads.data(), of_heads, context);
    heads.record();
    sums.record();
    StatisticArrays<T> statistics(recorder, call);
    if (statistics.any()) fused_statistics(kernel, call, statistics, pool);
    if (plan.streams)
        keep_streams(kernel, std::move(call), recorder, pool);
    else
        call = {};
    if (averages) recorder.record_chosen("attention_weights", averaged);
}

template <class T>
void attend_linear(const Plan& plan, AttentionCall<T>&& call, const HeadRows<T>& context,
                   Recorder& recorder, ThreadPool& pool) {
    const std::array<std::size_t, 4>& q = call.query.shape();
    const std::size_t kv_heads = call.key.shape(1), d_k = call.key.shape(3);
    const std::array<std::size_t, 4> of_heads{q[0], q[1], q[2], plan.d_v};
    LinearOutputs<T> outputs{context};
    AllHeads<T> heads(recorder, "head_outputs", {q[0], q[1], q[2], plan.d_v});
    if (heads.data() != nullptr) outputs.context = rows_of_heads(heads.data(), of_heads);
    AllHeads<T> states(recorder, "states", {q[0], kv_heads, q[2], d_k, plan.d_v});
    outputs.states = states.data();
    outputs.present_state =
        recorder.allocate<T>("present_state", std::array{q[0], kv_heads, d_k, plan.d_v});
    if (plan.backend->is_chunked())
        attend_chunked(*plan.backend->kernel, call, outputs, pool);
    else
        attend_sequential(call, outputs, pool);
    Tensor4<T> divisors;
    if (plan.normalizes()) divisors = retention_divisors(call, pool);
    for_each_index(divisors.size(), [&](std::size_t row) {
        T* const output = outputs.context.at(row / q[2] / q[1], row / q[2] % q[1], row % q[2]);
        for (std::size_t j = 0; j < plan.d_v; ++j) output[j] /= divisors.data()[row];
    });
    if (plan.normalizes()) recorder.record("row_divisor", divisors);
    if (heads.data() != nullptr) copy_heads<T>(heads.data(), of_heads, context);
    heads.record();
    states.record();
    trace_step(call, recorder);
    AllHeads<T> weights(recorder, "attention_weights", {q[0], q[1], q[2], plan.kv_len});
    if (weights.data() == nullptr) return;
    linear_weights(call, weights.data(), pool);
    for_each_index(divisors.size() * plan.kv_len, [&](std::size_t at) {
        weights.data()[at] /= divisors.data()[at / plan.kv_len];
    });
    call = {};
    weights.record();
}

/// The part of the question that no fused kernel computes: "writes mask"; empty: none.
std::string lacks_of_kernels(const Plan& plan) {
    if (!plan.config.rule && plan.config.mask_method == MaskMethod::renormalize)
        return "has mask_method renormalize";
    if (plan.config.prob_mod) return "has prob_mod";
    if (plan.config.top_k) return "has top_k";
    if (plan.config.backward && !plan.config.score_formulas.empty())
        return concat("has gradients of ", plan.config.score_formulas[0].key);
    for (const auto& [key, formula] : plan.config.score_formulas)
        if (!suits_kernels(formula, plan.expression_sizes()))
            return formula.nodes.size() > kernels::max_formula_nodes
                       ? concat("takes a ", key, " of more than ", kernels::max_formula_nodes,
                                " numbers, names and operations (", formula.nodes.size(), ")")
                       : concat("takes a ", key, " whose integers may exceed its exact range");
    std::string lacks;
    if (const Settings& s = plan.config; is_rounded(s.dtype)) {
        if (is_rounded(s.sum_type())) return "has accumulate " + std::string(row_of(s.dtype).name);
        if (is_rounded(s.softmax_type()))
            return "has softmax_dtype " + std::string(row_of(s.dtype).name);
    }
    plan.emit.for_each([&](ArrayId array) {
        // Kernels add up values by weights that are not rounded.
        const bool is_step = is_rounded(plan.config.dtype) && !plan.config.rule &&
                             array.row().counts_queries_and_keys();
        const bool is_beyond = array.row().from == From::reference || is_step;
        if (is_beyond && lacks.empty())
            lacks = concat("writes ", array.row().name, is_step ? " in " : "",
                           is_step ? row_of(plan.config.dtype).name : "");
    });
    return lacks;
}

double projection_work(const Plan& plan) {
    if (!plan.has_parameters()) return 0;
    return product_of_sizes(plan.batch) *
           (product_of_sizes(plan.q_len, plan.d_in, plan.heads, plan.d_k) +
            product_of_sizes(plan.keys, plan.kv_heads,
                             plan.d_context * plan.d_k + plan.d_value_input * plan.d_v));
}

/// The sequential form's, and those of the weights if they are recorded.
double linear_work(const Plan& plan) {
    // All heads, whichever are written.
    const int passes = has_beta(*plan.config.rule) ? 2 : 1;
    const double a_state = product_of_sizes(plan.d_k, plan.d_v);
    const double states = product_of_sizes(passes, plan.kv_heads, plan.keys, a_state);
    const double outputs = product_of_sizes(plan.heads, plan.rows, a_state);
    const double weights =
        plan.emit.has("attention_weights")
            ? product_of_sizes(plan.heads, plan.rows, plan.keys, plan.d_k, passes) / 2
            : 0;
    return product_of_sizes(plan.batch) * (states + outputs + weights);
}

}  // namespace

template <class T>
void attend(const Plan& plan, AttentionCall<T>&& call, const HeadRows<T>& context,
            Recorder& recorder, ThreadPool& pool) {
    if (plan.config.rule) return attend_linear(plan, std::move(call), context, recorder, pool);
    if (plan.backend->is_fused())
        return attend_by_kernel(plan, std::move(call), context, recorder, pool);
    const Tensor4<T> heads = attend(call, recorder);
    if (plan.needs_context()) copy_heads(heads.data(), heads.shape(), context);
}

template <class T>
AttentionGradients<T> attend_backward(const Plan& plan, const AttentionCall<T>& call,
                                      const Tensor4<T>& grad_context, Recorder& recorder,
                                      ThreadPool& pool) {
    if (plan.backend->is_fused())
        return backward_fused(*plan.backend->kernel, call, grad_context, pool);
    return attend_backward(call, grad_context, recorder);
}

template <class T>
void attend_part(const Backend& backend, const AttentionCall<T>& call, const HeadRows<T>& context,
                 double* logsumexp, ThreadPool& pool) {
    if (backend.is_fused()) {
        FusedOutputs<T> outputs{context};
        outputs.wide_logsumexp = logsumexp;
        return attend_fused(*backend.kernel, call, outputs, pool);
    }
    Recorder nothing({}, {});
    const Tensor4<T> heads = attend(call, nothing, logsumexp);
    copy_heads(heads.data(), heads.shape(), context);
}

template <class T>
void project(const Plan& plan, const Tensor3<T>& x, std::span<const ProjectionTo<T>> projections,
             ThreadPool& pool) {
    if (plan.backend->is_fused()) return project_fused(*plan.backend->kernel, x, projections, pool);
    for (const ProjectionTo<T>& to : projections) {
        const Tensor3<T> result = project(x, to.projection, plan.config.sum_type());
        const std::size_t width = result.shape(2) / to.heads;
        const T* from = result.data();
        for_each_index(result.shape(0) * result.shape(1), [&](std::size_t row) {
            for (std::size_t h = 0; h < to.heads; ++h, from += width)
                std::copy_n(from, width,
                            to.result.at(row / result.shape(1), h, row % result.shape(1)));
        });
    }
}

double multiply_adds(const Plan& plan) {
    return plan.config.rule ? linear_work(plan)
                            : product_of_sizes(plan.batch, plan.heads, plan.rows, plan.kv_len,
                                               plan.d_k + plan.d_v);
}

std::span<const Backend> backends() {
    static const std::vector<Backend> rows = [] {
        std::vector<Backend> made{{"reference", nullptr}};
        for (const kernels::Kernel& kernel : kernels::all()) made.push_back({kernel.name, &kernel});
        return made;
    }();
    return rows;
}

std::string_view backend_name(std::size_t index) {
    if (index == 0) return "auto";
    return index <= backends().size() ? backends()[index - 1].name : std::string_view();
}

const Backend& choose_backend(std::string_view name, const Plan& plan) {
    const Backend& reference = backends().front();
    const Backend* fastest = &reference;
    const std::string lacks = lacks_of_kernels(plan);
    std::string names = "auto";
    for (const Backend& backend : backends()) {
        if (!backend.runs_here()) continue;
        if (backend.name == name) {
            if (backend.is_fused() && !lacks.empty())
                refuse("kernel", "no fused kernel ", lacks, "; expected auto or reference");
            return backend;
        }
        fastest = &backend;
        names += ", " + std::string(backend.name);
    }
    if (name != "auto")
        throw SettingError(ErrorKind::unsupported, "kernel",
                           "this processor cannot run it; expected one of ", names);
    // Up to this many multiplications the reference is fast enough, about a millisecond.
    constexpr double small_work = 0x1p20;
    // One backend for the whole question: a mixture would have the digits of neither.
    const bool is_large = projection_work(plan) + multiply_adds(plan) > small_work;
    return is_large && lacks.empty() ? *fastest : reference;
}

bool streams_weights(const Plan& plan) {
    constexpr double large = 0x1p26;
    const auto element = static_cast<double>(row_of(arithmetic_of(plan.config.dtype)).size);
    const bool writes_mean = plan.shown.average_heads && plan.emit.has("attention_weights");
    // Dropout head by head draws several batch entries in a different order than they are written.
    const bool is_drawn_apart = plan.independent_heads() && plan.batch > 1;
    const bool writes = plan.emit.has("attention_weights") || plan.emit.has("scores");
    return plan.backend->is_fused() && writes && element * plan.numbers<double>("scores") > large &&
           !writes_mean && !is_drawn_apart;
}

template void attend(const Plan&, AttentionCall<float>&&, const HeadRows<float>&, Recorder&,
                     ThreadPool&);
template void attend(const Plan&, AttentionCall<double>&&, const HeadRows<double>&, Recorder&,
                     ThreadPool&);
template AttentionGradients<float> attend_backward(const Plan&, const AttentionCall<float>&,
                                                   const Tensor4<float>&, Recorder&, ThreadPool&);
template AttentionGradients<double> attend_backward(const Plan&, const AttentionCall<double>&,
                                                    const Tensor4<double>&, Recorder&, ThreadPool&);
template void attend_part(const Backend&, const AttentionCall<float>&, const HeadRows<float>&,
                          double*, ThreadPool&);
template void attend_part(const Backend&, const AttentionCall<double>&, const HeadRows<double>&,
                          double*, ThreadPool&);
template void project(const Plan&, const Tensor3<float>&, std::span<const ProjectionTo<float>>,
                      ThreadPool&);
template void project(const Plan&, const Tensor3<double>&, std::span<const ProjectionTo<double>>,
                      ThreadPool&);

}  // namespace attn
