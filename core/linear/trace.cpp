#include <algorithm>
#include <array>
#include <vector>

#include "core/linear/linear.hpp"
#include "core/linear/recurrence.hpp"

namespace attn {

template <class T>
void trace_step(const AttentionCall<T>& call, Recorder& recorder) {
    if (!recorder.records("state_before")) return;
    const std::size_t batch = call.key.shape(0), heads = call.key.shape(1), d_k = call.key.shape(3),
                      d_v = call.value.shape(3), token = call.first_query, one = 1;
    const auto allocate = [&](ArrayId array, std::size_t columns) {
        return recorder.allocate<T>(array, std::array{batch, heads, one, columns});
    };
    T* before = recorder.allocate<T>("state_before", std::array{batch, heads, one, d_k, d_v});
    T* factors = allocate("decay_factors", d_k);
    T* rates = allocate("update_rate", 1);
    T* retrieved = allocate("retrieved", d_v);
    T* written = allocate("written", d_v);
    if (is_dry_run()) return;
    std::vector<T> state(d_k * d_v);
    for (std::size_t index = 0; index < batch * heads; ++index) {
        const HeadOperands<T> head(call, index);
        head.start(before);
        for (std::size_t t = 0; t < token; ++t) head.step(t, before, written);
        for (std::size_t i = 0; i < d_k; ++i) {
            factors[i] = head.decay == nullptr ? T{1} : head.decay_of(token, i);
            for (std::size_t j = 0; j < d_v; ++j)
                state[i * d_v + j] = before[i * d_v + j] * factors[i];
        }
        *rates = head.beta == nullptr ? T{1} : head.beta[token];
        multiply_row(head.key + token * d_k, d_k, state.data(), d_v, retrieved);
        std::copy_n(before, d_k * d_v, state.data());
        head.step(token, state.data(), written);
        before += d_k * d_v;
        factors += d_k;
        rates += 1;
        retrieved += d_v;
        written += d_v;
    }
}

template void trace_step(const AttentionCall<float>&, Recorder&);
template void trace_step(const AttentionCall<double>&, Recorder&);

}  // namespace attn
