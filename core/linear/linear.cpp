#include "core/linear/linear.hpp"

#include <array>
#include <numeric>
#include <vector>

#include "core/base/memory.hpp"
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
    run_in_slots(pool, heads, [&](std::size_t index, std::size_t slot) {
        const HeadOperands<T> head(call, index);
        T* const state = scratch.data() + slot * (state_size + d_v);
        head.start(state);
        const std::size_t end =
            outputs.present_state != nullptr ? head.tokens : call.first_query + rows;
        for (std::size_t t = 0; t < end; ++t) {
            const bool is_row = t >= call.first_query && t < call.first_query + rows;
            const std::size_t row = t - call.first_query;
            const auto read = [&] {
                for (std::size_t h = index % kv_heads * group, last = h + group; h < last; ++h)
                    head.read(t, &call.query(index / kv_heads, h, row, 0), state, call.scale,
                              outputs.context.at(index / kv_heads, h, row));
            };
            if (is_row && head.bonus != nullptr) read();
            head.step(t, state, state + state_size);
            if (!is_row) continue;
            if (head.bonus == nullptr) read();
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
    for_each_index(batch * heads, [&](std::size_t index) {
        const HeadOperands<T> head(call, index);
        std::vector<T> state(d_k * d_v);
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
    });
}

template void trace_step(const AttentionCall<float>&, Recorder&);
template void trace_step(const AttentionCall<double>&, Recorder&);

namespace {

/// a b in eight sums, which compilers compute as vectors.
template <class T>
T dot_product(const T* a, const T* b, std::size_t length) {
    constexpr std::size_t lanes = 8;
    T sums[lanes] = {};
    std::size_t i = 0;
    for (; i + lanes <= length; i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    for (; i < length; ++i) sums[0] += a[i] * b[i];
    return std::accumulate(sums, sums + lanes, T{0});
}

/// The weights of one query, that of token `last`. `reader` is a buffer of d_k elements.
template <class T>
void weigh(const HeadOperands<T>& head, const T* query, std::size_t last, double scale, T* reader,
           T* weights) {
    const std::size_t d_k = head.d_k;
    std::copy_n(query, d_k, reader);
    for (std::size_t s = last + 1; s-- > 0;) {
        const T* const k = head.key + s * d_k;
        // Of the state before the token's step, its own decay is not yet part.
        const bool is_own = head.bonus != nullptr && s == last;
        T weight = is_own ? head.own_weight(s, reader) : dot_product(reader, k, d_k);
        if (head.beta != nullptr) {
            weight *= head.beta[s];
            for (std::size_t i = 0; i < d_k; ++i) reader[i] -= weight * k[i];
        }
        if (head.decay != nullptr && !is_own)
            for (std::size_t i = 0; i < d_k; ++i) reader[i] *= head.decay_of(s, i);
        weights[s] = static_cast<T>(scale) * weight;
    }
    std::fill(weights + last + 1, weights + head.tokens, T{0});
}

}  // namespace

template <class T>
void linear_weights(const AttentionCall<T>& call, T* weights, ThreadPool& pool) {
    const std::size_t heads = call.query.shape(1), rows = call.query.shape(2),
                      d_k = call.key.shape(3), tokens = call.key.shape(2),
                      group = heads / call.key.shape(1), items = call.query.shape(0) * heads * rows;
    AlignedArray<T> readers;
    readers.reserve(std::min(pool.threads(), items) * d_k);
    run_in_slots(pool, items, [&](std::size_t item, std::size_t slot) {
        // The last rows take longest: they come first.
        const std::size_t row = rows - 1 - item % rows, h = item / rows;
        weigh(HeadOperands<T>(call, h / group), call.query.data() + (h * rows + row) * d_k,
              call.first_query + row, call.scale, readers.data() + slot * d_k,
              weights + (h * rows + row) * tokens);
    });
}

template <class T>
Tensor4<T> retention_divisors(const AttentionCall<T>& call, ThreadPool& pool) {
    const Tensor4<T>& q = call.query;
    const std::size_t d_k = q.shape(3), rows = q.shape(2), kv_heads = call.key.shape(1),
                      group = q.shape(1) / kv_heads;
    auto divisors = Tensor4<T>::from_shape({q.shape(0), q.shape(1), rows, 1});
    pool.run(q.shape(0) * kv_heads, [&](std::size_t index, std::size_t) {
        const HeadOperands<T> head(call, index);
        std::vector<T> keys(d_k, T{0});
        T decays{0};
        for (std::size_t t = 0; t < call.first_query + rows; ++t) {
            const T factor = head.decay == nullptr ? T{1} : head.decay_of(t, 0);
            decays = factor * decays + 1;
            for (std::size_t i = 0; i < d_k; ++i)
                keys[i] = factor * keys[i] + head.key[t * d_k + i];
            if (t < call.first_query) continue;
            for (std::size_t h = index * group; h < (index + 1) * group; ++h) {
                const std::size_t row = h * rows + t - call.first_query;
                const T sum = dot_product(q.data() + row * d_k, keys.data(), d_k);
                divisors.data()[row] =
                    std::max(std::sqrt(decays), std::abs(static_cast<T>(call.scale) * sum));
            }
        }
    });
    return divisors;
}

template Tensor4<float> retention_divisors(const AttentionCall<float>&, ThreadPool&);
template Tensor4<double> retention_divisors(const AttentionCall<double>&, ThreadPool&);

template void linear_weights(const AttentionCall<float>&, float*, ThreadPool&);
template void linear_weights(const AttentionCall<double>&, double*, ThreadPool&);

}  // namespace attn
