#include <algorithm>

#include "core/base/memory.hpp"
#include "core/base/thread_pool.hpp"
#include "core/linear/linear.hpp"
#include "core/linear/recurrence.hpp"

namespace attn {

template <class T>
void attend_sequential(const AttentionCall<T>& call, const LinearOutputs<T>& outputs,
                       ThreadPool& pool) {
    const std::size_t kv_heads = call.key.shape(1), heads = call.key.shape(0) * kv_heads,
                      group = call.query.shape(1) / kv_heads, rows = call.query.shape(2),
                      d_k = call.key.shape(3), d_v = call.value.shape(3), state_size = d_k * d_v;
    AlignedArray<T> scratch;  // per worker, a state and an update
    scratch.reserve(std::min(pool.threads(), heads) * (state_size + d_v));
    if (is_dry_run()) return;
    WorkerSlots slots(pool.threads());
    pool.run(heads, [&](std::size_t index, std::size_t worker) {
        const HeadOperands<T> head(call, index);
        T* const state = scratch.data() + slots.of(worker) * (state_size + d_v);
        head.start(state);
        const std::size_t end =
            outputs.present_state != nullptr ? head.tokens : call.first_query + rows;
        for (std::size_t t = 0; t < end; ++t) {
            head.step(t, state, state + state_size);
            if (t < call.first_query || t >= call.first_query + rows) continue;
            const std::size_t row = t - call.first_query;
            for (std::size_t h = index % kv_heads * group, last = h + group; h < last; ++h)
                head.read(&call.query(index / kv_heads, h, row, 0), state, call.scale,
                          outputs.context.at(index / kv_heads, h, row));
            if (outputs.states != nullptr)
                std::copy_n(state, state_size, outputs.states + (index * rows + row) * state_size);
        }
        if (outputs.present_state != nullptr)
            std::copy_n(state, state_size, outputs.present_state + index * state_size);
    });
}

template void attend_sequential(const AttentionCall<float>&, const LinearOutputs<float>&,
                                ThreadPool&);
template void attend_sequential(const AttentionCall<double>&, const LinearOutputs<double>&,
                                ThreadPool&);

}  // namespace attn
