#include <algorithm>
#include <numeric>

#include "core/base/memory.hpp"
#include "core/base/thread_pool.hpp"
#include "core/linear/linear.hpp"
#include "core/linear/recurrence.hpp"

namespace attn {
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
        T weight = dot_product(reader, k, d_k);
        if (head.beta != nullptr) {
            weight *= head.beta[s];
            for (std::size_t i = 0; i < d_k; ++i) reader[i] -= weight * k[i];
        }
        if (head.decay != nullptr)
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
    if (is_dry_run()) return;
    WorkerSlots slots(pool.threads());
    pool.run(items, [&](std::size_t item, std::size_t worker) {
        // The last rows take longest: they come first.
        const std::size_t row = rows - 1 - item % rows, h = item / rows;
        weigh(HeadOperands<T>(call, h / group), call.query.data() + (h * rows + row) * d_k,
              call.first_query + row, call.scale, readers.data() + slots.of(worker) * d_k,
              weights + (h * rows + row) * tokens);
    });
}

template void linear_weights(const AttentionCall<float>&, float*, ThreadPool&);
template void linear_weights(const AttentionCall<double>&, double*, ThreadPool&);

}  // namespace attn
