// The chunked form: tokens are taken in chunks, and what each token writes to the state within its
// chunk follows from a triangular system, so that all but a few terms are matrix products.
//
// With S the state before a chunk, G_i the decay from its start to token i, and D_ij that after
// token j up to token i, the rows u_i that the chunk's tokens write are v_i or, for the delta
// rules, solve
//     u_i = beta_i (v_i - (G_i S)^T k_i - sum_{j < i} (k_i D_ij k_j) u_j)
// Then o_i = scale ((G_i S)^T q_i + sum_{j <= i} (q_i D_ij k_j) u_j), and the state after the chunk
// is G_n S + sum_j D_nj k_j u_j^T. Source: Yang et al. 2024, "Parallelizing Linear Transformers
// with the Delta Rule over Sequence Length" (arXiv 2406.06484), section 3; with decay: "Gated Delta
// Networks" (arXiv 2412.06464), section 3.3, and, per key dimension, "Gated Linear Attention
// Transformers" (arXiv 2312.06635), section 4.
//
// Decays are products of the factors e^g themselves, in the order of time; a factor that
// underflowed is never divided by.
#include <limits>

#include "core/base/layout.hpp"
#include "core/base/memory.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/linear/chunk_scratch.hpp"
#include "core/linear/linear.hpp"

namespace attn {
namespace {

/// Shorter chunks, at the end or between tokens that a chunk cannot have, are computed step by
/// step.
constexpr std::size_t least_tokens = 4;

/// 2^(eighths / 8 of T's largest exponent).
template <class T>
constexpr T power(int eighths) {
    constexpr T eighth = static_cast<T>(sizeof(T) == sizeof(float) ? 0x1p16 : 0x1p128);
    return eighths == 1 ? eighth : eighth * power<T>(eighths - 1);
}
/// Limits of the magnitudes of operands and u, of the state, and of ChunkDecay::growth. Within them
/// no sum overflows, here or step by step, and neither do products of which only a part is used.
template <class T>
constexpr T operand_limit = power<T>(2);
template <class T>
constexpr T state_limit = power<T>(4);
template <class T>
constexpr T growth_limit = power<T>(1);

template <class T>
class ChunkedHeads {
    using Worker = ChunkScratch<T>;

public:
    ChunkedHeads(const kernels::Entries<T>& entries, const AttentionCall<T>& call,
                 const LinearOutputs<T>& outputs)
        : entries_(entries), call_(call), outputs_(outputs), d_k_(call.key.shape(3)),
          d_v_(call.value.shape(3)), at_{entries, d_k_, d_v_} {}

    void run(ThreadPool& pool) const {
        const std::size_t heads = call_.key.shape(0) * call_.key.shape(1);
        Worker parts;
        const std::size_t size = at_.divide(parts, nullptr);
        AlignedArray<T> scratch;
        scratch.reserve(std::min(pool.threads(), heads) * size);
        run_in_slots(pool, heads, [&](std::size_t index, std::size_t slot) {
            attend(index, scratch.data() + slot * size);
        });
    }

private:
    void attend(std::size_t index, T* scratch) const {
        Worker w{HeadOperands<T>(call_, index), index};
        at_.divide(w, scratch);
        w.decay = ChunkDecay<T>(entries_, w.head, w.decays);
        std::fill_n(w.left, chunk_tokens * at_.left_stride, T{0});
        std::fill_n(w.right, at_.panels * (d_k_ + chunk_tokens) * at_.lanes, T{0});
        w.head.start(w.state);
        at_.set_panels(w);
        const std::size_t last_query = call_.first_query + call_.query.shape(2);
        const std::size_t end = outputs_.present_state != nullptr ? w.head.tokens : last_query;
        for (w.first = 0; w.first < end; w.first += w.tokens) {
            const std::size_t left = w.head.tokens - w.first;
            w.tokens = w.decay.read(w.first, std::min(chunk_tokens, left));
            if (w.tokens < least_tokens) {
                w.tokens = std::min(least_tokens, left);
                take_steps(w);
            } else if (!take_chunk(w)) {
                take_steps(w);
            }
        }
        if (outputs_.present_state == nullptr) return;
        at_.get_state(w);
        std::copy_n(w.state, d_k_ * d_v_, outputs_.present_state + index * d_k_ * d_v_);
    }

    /// The chunk's rows that are queries, and the query of the chunk's row i.
    std::pair<std::size_t, std::size_t> query_rows(const Worker& w) const {
        const std::size_t begin = std::max(w.first, call_.first_query);
        const std::size_t end =
            std::min(w.first + w.tokens, call_.first_query + call_.query.shape(2));
        return begin < end ? std::pair(begin - w.first, end - w.first)
                           : std::pair<std::size_t, std::size_t>{};
    }
    std::size_t group() const { return call_.query.shape(1) / call_.key.shape(1); }
    const T* query(const Worker& w, std::size_t member, std::size_t i) const {
        return call_.query.data() + ((w.index * group() + member) * call_.query.shape(2) + w.first +
                                     i - call_.first_query) *
                                        d_k_;
    }
    T* output(const Worker& w, std::size_t member, std::size_t i) const {
        const std::size_t kv_heads = call_.key.shape(1);
        return outputs_.context.at(w.index / kv_heads, w.index % kv_heads * group() + member,
                                   w.first + i - call_.first_query);
    }

    void take_steps(Worker& w) const {
        at_.get_state(w);
        const auto [begin, end] = query_rows(w);
        for (std::size_t i = 0; i < w.tokens; ++i) {
            w.head.step(w.first + i, w.state, w.update);
            for (std::size_t member = 0; i >= begin && i < end && member < group(); ++member)
                w.head.read(w.first + i, query(w, member, i), w.state, call_.scale,
                            output(w, member, i));
        }
        at_.set_panels(w);
    }

    /// False: an operand or a result might be too large, and the state is as it was.
    bool take_chunk(Worker& w) const {
        const T* const keys = w.head.key + w.first * d_k_;
        const T* const values = w.head.value + w.first * d_v_;
        const auto [begin, end] = query_rows(w);
        const T key = entries_.largest(keys, w.tokens * d_k_);
        const T value = entries_.largest(values, w.tokens * d_v_);
        if (w.decay.growth() > growth_limit<T> || !(std::max(key, value) <= operand_limit<T>) ||
            !can_split(w, keys, w.tokens))
            return false;
        for (std::size_t member = 0; begin < end && member < group(); ++member) {
            const T* const rows = query(w, member, begin);
            if (entries_.largest(rows, (end - begin) * d_k_) > operand_limit<T> ||
                !can_split(w, rows, end - begin))
                return false;
        }
        const bool is_delta = w.head.beta != nullptr;
        T bound = bound_after(w, is_delta ? T{0} : key * value);
        if (!(bound <= state_limit<T>)) return false;
        pack_keys(w, keys);
        for (std::size_t p = 0; p < at_.panels; ++p)
            at_.set_rows(values, w.tokens, p, at_.added(w, p));
        if (is_delta) {
            const T most = solve(w, keys);
            bound = bound_after(w, key * most);
            if (!(most <= operand_limit<T> && bound <= state_limit<T>)) return false;
        }
        for (std::size_t member = 0; begin < end && member < group(); ++member) {
            set_left(w, query(w, member, begin), begin, end);
            for (std::size_t p = 0; p < at_.panels; ++p)
                entries_.read(at_.product(w, p), begin, end, static_cast<T>(call_.scale),
                              output(w, member, begin) + p * at_.lanes, outputs_.context.row);
        }
        const auto passing = w.decay.pass(w.split, w.passed);
        for (std::size_t p = 0; p < at_.panels; ++p)
            entries_.update(at_.product(w, p), passing.keys, passing.before, passing.after);
        w.bound = bound;
        return true;
    }

    /// Whether splitting decays leaves the digits of rows of keys or queries as they are.
    bool can_split(const Worker& w, const T* rows, std::size_t count) const {
        return !w.decay.splits() || entries_.magnitudes(rows, count * d_k_).least >=
                                        std::numeric_limits<T>::min() * ChunkDecay<T>::range;
    }

    /// The bound of the state after the chunk if each token adds at most `most` to an element of
    /// it.
    T bound_after(Worker& w, T most) const {
        const auto after = [&] {
            return w.decay.growth() * (w.bound + static_cast<T>(w.tokens) * most);
        };
        if (!(after() <= state_limit<T>)) at_.measure(w);
        return after();
    }

    /// The keys as columns, in the form that the rows of set_left multiply.
    void pack_keys(Worker& w, const T* keys) const {
        w.split = w.decay.split_keys(keys, w.split_buffer);
        const T* rows[chunk_tokens];
        for (std::size_t j = 0; j < w.tokens; ++j) rows[j] = w.split + j * d_k_;
        for (std::size_t key = 0; key < w.tokens; key += at_.lanes)
            entries_.pack(rows + key, std::min(at_.lanes, w.tokens - key), d_k_, T{1},
                          w.packed + key * d_k_);
    }

    /// left[i] = [G_i x_i, x_i D_ij k_j for all j up to i, 0 for later ones]. `x` is row `begin`.
    void set_left(Worker& w, const T* x, std::size_t begin, std::size_t end) const {
        const std::size_t stride = at_.left_stride;
        w.decay.scale_rows(begin, end, x, w.left + begin * stride, stride);
        const bool splits = w.decay.splits();
        const T* const rows = splits ? w.left + begin * stride : x;
        const std::size_t row_stride = splits ? stride : d_k_;
        for (std::size_t key = 0; key < end; key += at_.lanes) {
            const std::size_t from = std::max(begin, key),
                              columns = std::min(at_.lanes, w.tokens - key),
                              vector = entries_.vector_lanes;
            entries_.weigh({end - from, d_k_, (columns + vector - 1) / vector * vector,
                            rows + (from - begin) * row_stride, row_stride, w.packed + key * d_k_,
                            nullptr, w.left + from * stride + d_k_ + key, stride},
                           w.decay.between() + from * chunk_tokens + key, chunk_tokens, from - key);
        }
    }

    /// The rows u of the delta rules; the largest magnitude in them, or infinity.
    T solve(Worker& w, const T* keys) const {
        const T* const rates = w.head.beta + w.first;
        T largest = entries_.largest(rates, w.tokens);
        if (!(largest <= operand_limit<T>)) return largest;
        largest = 0;
        set_left(w, keys, 0, w.tokens);
        for (std::size_t p = 0; p < at_.panels; ++p) {
            entries_.substitute(at_.product(w, p), rates);
            largest = std::max(largest, entries_.largest(at_.added(w, p), w.tokens * at_.lanes));
        }
        return largest;
    }

    const kernels::Entries<T>& entries_;
    const AttentionCall<T>& call_;
    const LinearOutputs<T>& outputs_;
    std::size_t d_k_, d_v_;
    ChunkLayout<T> at_;
};

/// With a bonus, token t reads the state that token t - 1 leaves: the chunks are of the same tokens
/// after one that changes nothing.
template <class T>
void attend_after(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                  const LinearOutputs<T>& outputs, ThreadPool& pool) {
    AttentionCall<T> later;
    later.query = call.query;
    later.first_query = call.first_query;
    later.scale = call.scale;
    later.recurrence = call.recurrence;
    later.recurrence.bonus.clear();
    const auto moved = [](const Tensor4<T>& rows, T first) {
        if (rows.size() == 0) return Tensor4<T>();
        auto one = Tensor4<T>::from_shape({rows.shape(0), rows.shape(1), 1, rows.shape(3)});
        one.fill(first);
        return joined(2, one, rows);
    };
    later.key = moved(call.key, T{0});
    later.value = moved(call.value, T{0});
    later.recurrence.decay = moved(call.recurrence.decay, T{1});
    attend_chunked(kernel, later, outputs, pool);
    const std::size_t heads = call.query.shape(1), rows = call.query.shape(2),
                      d_k = call.key.shape(3), d_v = call.value.shape(3),
                      group = heads / call.key.shape(1);
    pool.run(call.query.shape(0) * heads, [&](std::size_t index, std::size_t) {
        const HeadOperands<T> head(call, index / group);
        for (std::size_t row = 0; row < rows; ++row) {
            const std::size_t t = call.first_query + row;
            const T* const q = call.query.data() + (index * rows + row) * d_k;
            const T weight = static_cast<T>(call.scale) * head.own_weight(t, q);
            T* const output = outputs.context.at(index / heads, index % heads, row);
            for (std::size_t j = 0; j < d_v; ++j) output[j] += weight * head.value[t * d_v + j];
        }
    });
}

}  // namespace

template <class T>
void attend_chunked(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                    const LinearOutputs<T>& outputs, ThreadPool& pool) {
    const bool is_delta = call.recurrence.beta.size() != 0;
    if (!call.recurrence.bonus.empty()) return attend_after(kernel, call, outputs, pool);
    if (is_delta && call.key.shape(3) < chunk_tokens) return attend_sequential(call, outputs, pool);
    ChunkedHeads<T>(kernels::entries_of<T>(kernel), call, outputs).run(pool);
}

template void attend_chunked(const kernels::Kernel&, const AttentionCall<float>&,
                             const LinearOutputs<float>&, ThreadPool&);
template void attend_chunked(const kernels::Kernel&, const AttentionCall<double>&,
                             const LinearOutputs<double>&, ThreadPool&);

}  // namespace attn
