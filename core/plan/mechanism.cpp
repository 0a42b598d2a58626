#include "core/plan/mechanism.hpp"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/linear/linear.hpp"

namespace attn {
namespace {

/// The portable kernel's products take longer than the steps that they replace.
bool is_chunked(const Backend& backend) {
    return backend.is_fused() && backend.name != "generic";
}

template <class T>
void attend_linear(const Plan& plan, AttentionCall<T> call, const HeadRows<T>& context,
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
    if (is_chunked(*plan.backend))
        attend_chunked(*plan.backend->kernel, call, outputs, pool);
    else
        attend_sequential(call, outputs, pool);
    if (heads.data() != nullptr) copy_heads<T>(heads.data(), of_heads, context);
    heads.record();
    states.record();
    trace_step(call, recorder);
    if (!recorder.records("attention_weights")) return;
    const std::array<std::size_t, 4> of_weights{q[0], q[1], q[2], plan.kv_len};
    if (!recorder.averages("attention_weights")) {
        AllHeads<T> weights(recorder, "attention_weights", {q[0], q[1], q[2], plan.kv_len});
        linear_weights(call, weights.data(), pool);
        return weights.record();
    }
    Tensor4<T> weights = Tensor4<T>::from_shape(of_weights);
    linear_weights(call, weights.data(), pool);
    call = {};
    recorder.record("attention_weights", weights);
}

/// Softmax attention's backends with another operator: the projections are the same.
std::span<const Backend> linear_backends() {
    static const std::vector<Backend> rows = [] {
        std::vector<Backend> made(softmax_backends().begin(), softmax_backends().end());
        for (Backend& backend : made) {
            backend.float32.attend = attend_linear<float>;
            backend.float64.attend = attend_linear<double>;
            if (backend.is_fused()) backend.lacks = lacks_of_arrays;
        }
        return made;
    }();
    return rows;
}

double softmax_work(const Plan& plan) {
    return plan.size_of<double>(Axis::batch) * static_cast<double>(plan.heads) *
           static_cast<double>(plan.rows) * static_cast<double>(plan.kv_len) *
           static_cast<double>(plan.d_k + plan.d_v);
}

/// The sequential form's, and those of the weights if they are recorded.
double linear_work(const Plan& plan) {
    const auto size = [&](Axis axis) { return plan.size_of<double>(axis); };
    const bool is_delta = has_beta(*plan.rule);
    // All heads, whichever are written.
    const auto heads = static_cast<double>(plan.heads),
               kv_heads = static_cast<double>(plan.kv_heads);
    const double a_state = size(Axis::d_k) * size(Axis::d_v);
    const double states = (is_delta ? 2 : 1) * kv_heads * size(Axis::kv_len) * a_state;
    const double outputs = heads * size(Axis::q_len) * a_state;
    const double weights = plan.emit.has("attention_weights")
                               ? heads * size(Axis::q_len) * size(Axis::kv_len) * size(Axis::d_k) *
                                     (is_delta ? 2 : 1) / 2
                               : 0;
    return size(Axis::batch) * (states + outputs + weights);
}

constexpr MechanismRow mechanism_rows[] = {
    {Mechanism::softmax, needs::softmax, softmax_backends, softmax_work},
    {Mechanism::linear, needs::linear, linear_backends, linear_work}};
static_assert(mechanism_rows[static_cast<std::size_t>(Mechanism::softmax)].mechanism ==
                      Mechanism::softmax &&
                  mechanism_rows[static_cast<std::size_t>(Mechanism::linear)].mechanism ==
                      Mechanism::linear,
              "rows are in the order of their mechanisms");

}  // namespace

const MechanismRow& row_of(Mechanism mechanism) {
    return mechanism_rows[static_cast<std::size_t>(mechanism)];
}

}  // namespace attn
