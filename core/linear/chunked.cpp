// The chunked form: tokens are taken in chunks, and what each token writes to the state within its
// chunk follows from a triangular system, so that all but a few terms are matrix products.
//
// With S the state before a chunk, G_i the decay from its start to token i, and D_ij that after
// token j up to token i, the rows u_i that the chunk's tokens write solve
//     u_i = beta_i (v_i - (G_i S)^T k_i - sum_{j < i} (k_i D_ij k_j) u_j)     (delta rules; else
//     v_i) o_i = scale ((G_i S)^T q_i + sum_{j <= i} (q_i D_ij k_j) u_j)
// and the state after it is G_n S + sum_j D_nj k_j u_j^T. Source: Yang et al. 2024, "Parallelizing
// Linear Transformers with the Delta Rule over Sequence Length" (arXiv 2406.06484), section 3; with
// decay: "Gated Delta Networks" (arXiv 2412.06464), section 3.3, and, per key dimension, "Gated
// Linear Attention Transformers" (arXiv 2312.06635), section 4.
//
// Decays are products of the factors e^g themselves, in the order of time; a factor that
// underflowed is never divided by. S and the rows u lie one above the other in panels of the
// kernel's lanes, so that each sum above is one product.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/base/memory.hpp"
#include "core/base/worker_slots.hpp"
#include "core/kernels/dispatch.hpp"
#include "core/linear/chunk_decay.hpp"
#include "core/linear/linear.hpp"
#include "core/linear/recurrence.hpp"

namespace attn {
namespace {

/// Rows of a triangle that are solved or multiplied at once; divides chunk_tokens.
constexpr std::size_t block_rows = 16;

/// Shorter chunks, at the end or between non-finite ones, are computed step by step.
constexpr std::size_t least_tokens = 4;

template <class T>
class ChunkedHeads {
public:
    ChunkedHeads(const kernels::Entries<T>& entries, const AttentionCall<T>& call,
                 const LinearOutputs<T>& outputs)
        : entries_(entries), call_(call), outputs_(outputs), d_k_(call.key.shape(3)),
          d_v_(call.value.shape(3)), lanes_(entries.lanes), panels_((d_v_ + lanes_ - 1) / lanes_),
          chunk_(tokens_of_chunk(call)), left_stride_(d_k_ + chunk_tokens),
          key_columns_((chunk_tokens + lanes_ - 1) / lanes_ * lanes_) {}

    void run(ThreadPool& pool) const {
        const std::size_t heads = call_.key.shape(0) * call_.key.shape(1);
        Worker parts;
        const std::size_t size = divide(parts, nullptr);
        AlignedArray<T> scratch;
        scratch.reserve(std::min(pool.threads(), heads) * size);
        if (is_dry_run()) return;
        WorkerSlots slots(pool.threads());
        pool.run(heads, [&](std::size_t index, std::size_t worker) {
            attend(index, scratch.data() + slots.of(worker) * size);
        });
    }

private:
    void attend(std::size_t index, T* scratch) const {
        Worker w{HeadOperands<T>(call_, index), index};
        divide(w, scratch);
        w.decay = ChunkDecay<T>(w.head, w.decays);
        w.head.start(w.state);
        set_panels(w);
        w.is_moderate = has_moderate_state(w);
        const std::size_t last_query = call_.first_query + call_.query.shape(2);
        const std::size_t end = outputs_.present_state != nullptr ? w.head.tokens : last_query;
        for (std::size_t first = 0; first < end; first += chunk_) {
            w.first = first;
            w.tokens = std::min(chunk_, w.head.tokens - first);
            if (!take_chunk(w)) take_steps(w);
        }
        if (outputs_.present_state == nullptr) return;
        get_state(w);
        std::copy_n(w.state, d_k_ * d_v_, outputs_.present_state + index * d_k_ * d_v_);
    }

    struct Worker {
        HeadOperands<T> head{};
        std::size_t index = 0;              ///< batch entry * kv_heads + key head
        std::size_t first = 0, tokens = 0;  ///< of the chunk
        ChunkDecay<T> decay{};
        T* right = nullptr;        ///< panels of (d_k + chunk_tokens, lanes): S above u
        T* saved = nullptr;        ///< panels of (d_k, lanes): S before the chunk
        T* packed = nullptr;       ///< panels of (d_k, lanes): keys, one per column
        T* scaled = nullptr;       ///< (chunk_tokens, d_k): keys or queries times decays
        T* left = nullptr;         ///< (chunk_tokens, d_k + chunk_tokens): factors of S and u
        T* transposed = nullptr;   ///< (d_k, chunk_tokens): keys times the decay to the chunk's end
        T* product = nullptr;      ///< (max(d_k, chunk_tokens), columns)
        T* inverse = nullptr;      ///< (block_rows, block_rows)
        T* decays = nullptr;       ///< of ChunkDecay
        bool is_moderate = false;  ///< the state, so that a chunk may start from it
        std::size_t packed_segment = 0;         ///< whose keys are packed
        T *state = nullptr, *update = nullptr;  ///< (d_k, d_v) and (d_v), step by step
    };

    /// More tokens than dimensions of keys have corrections that cancel, which costs digits.
    static std::size_t tokens_of_chunk(const AttentionCall<T>& call) {
        const std::size_t d_k = call.key.shape(3);
        if (call.recurrence.beta.size() == 0) return chunk_tokens;
        return std::clamp(d_k / block_rows * block_rows, block_rows, chunk_tokens);
    }

    /// Divides a worker's scratch into parts, aligned to 64 bytes; the size of all of them. Null:
    /// the size only.
    std::size_t divide(Worker& w, T* scratch) const {
        std::size_t taken = 0;
        const auto take = [&](T*& part, std::size_t size) {
            part = scratch == nullptr ? nullptr : scratch + taken;
            taken += (size + 15) / 16 * 16;
        };
        take(w.right, panels_ * (d_k_ + chunk_tokens) * lanes_);
        take(w.saved, panels_ * d_k_ * lanes_);
        take(w.packed, d_k_ * key_columns_);
        take(w.scaled, chunk_tokens * d_k_);
        take(w.left, chunk_tokens * left_stride_);
        take(w.transposed, d_k_ * chunk_tokens);
        take(w.product,
             std::max(chunk_tokens * key_columns_, std::max(d_k_, chunk_tokens) * lanes_));
        take(w.inverse, block_rows * block_rows);
        take(w.decays, ChunkDecay<T>::scratch_size(d_k_));
        take(w.state, d_k_ * d_v_);
        take(w.update, d_v_);
        return taken;
    }

    static constexpr std::size_t none = ~std::size_t{0};

    T* panel(const Worker& w, std::size_t p) const {
        return w.right + p * (d_k_ + chunk_tokens) * lanes_;
    }
    /// The columns of d_v in a panel, and those computed: whole vectors.
    std::size_t columns_of(std::size_t p) const { return std::min(lanes_, d_v_ - p * lanes_); }
    std::size_t whole_vectors(std::size_t columns) const {
        return (columns + entries_.vector_lanes - 1) / entries_.vector_lanes *
               entries_.vector_lanes;
    }

    /// out = x packed: `rows` rows of `length` elements, times (length, lanes).
    void multiply(std::size_t rows, std::size_t length, std::size_t columns, const T* x,
                  std::size_t x_stride, const T* packed, T* out, std::size_t out_stride) const {
        entries_.project({rows, length, columns, x, x_stride, packed, nullptr, out, out_stride});
    }

    /// 2^(fourths / 4 of T's largest exponent). Sums of products of numbers up to some of these
    /// overflow neither here nor step by step.
    static constexpr T power(int fourths) {
        constexpr T fourth = static_cast<T>(sizeof(T) == sizeof(float) ? 0x1p32 : 0x1p256);
        return fourths == 1 ? fourth : fourth * power(fourths - 1);
    }
    /// Whether all magnitudes are at most `limit`. Words as wide as T let compilers use vectors.
    static bool are_below(T limit, const T* numbers, std::size_t count) {
        using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
        Word above = 0;
        for (std::size_t i = 0; i < count; ++i)
            above |= std::abs(numbers[i]) <= limit ? Word{0} : Word{1};
        return above == 0;
    }

    /// From the state to the panels, and back.
    void set_panels(Worker& w) const {
        for (std::size_t p = 0; p < panels_; ++p)
            for (std::size_t i = 0; i < d_k_; ++i) {
                T* const row = panel(w, p) + i * lanes_;
                std::copy_n(w.state + i * d_v_ + p * lanes_, columns_of(p), row);
                std::fill(row + columns_of(p), row + lanes_, T{0});
            }
    }
    void get_state(Worker& w) const {
        for (std::size_t p = 0; p < panels_; ++p)
            for (std::size_t i = 0; i < d_k_; ++i)
                std::copy_n(panel(w, p) + i * lanes_, columns_of(p),
                            w.state + i * d_v_ + p * lanes_);
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
        get_state(w);
        const auto [begin, end] = query_rows(w);
        for (std::size_t i = 0; i < w.tokens; ++i) {
            w.head.step(w.first + i, w.state, w.update);
            for (std::size_t member = 0; i >= begin && i < end && member < group(); ++member)
                w.head.read(query(w, member, i), w.state, call_.scale, output(w, member, i));
        }
        set_panels(w);
        w.is_moderate = has_moderate_state(w);
    }

    /// Whether keys or queries are moderate; if they are scaled (see ChunkDecay), also afterwards.
    bool is_usable(const Worker& w, const T* numbers, std::size_t count) const {
        if (!are_below(power(1), numbers, count)) return false;
        return !w.decay.by_dimension() || entries_.magnitudes(numbers, count).least >=
                                              std::numeric_limits<T>::min() * ChunkDecay<T>::range;
    }
    bool has_usable_operands(const Worker& w) const {
        const HeadOperands<T>& head = w.head;
        const auto [begin, end] = query_rows(w);
        bool usable = is_usable(w, head.key + w.first * d_k_, w.tokens * d_k_) &&
                      are_below(power(1), head.value + w.first * d_v_, w.tokens * d_v_) &&
                      (head.beta == nullptr || are_below(power(1), head.beta + w.first, w.tokens));
        for (std::size_t member = 0; usable && begin < end && member < group(); ++member)
            usable = is_usable(w, query(w, member, begin), (end - begin) * d_k_);
        return usable;
    }
    bool has_moderate_state(const Worker& w) const {
        for (std::size_t p = 0; p < panels_; ++p)
            if (!are_below(power(2), panel(w, p), d_k_ * lanes_)) return false;
        return true;
    }
    bool has_moderate_outputs(const Worker& w) const {
        const auto [begin, end] = query_rows(w);
        for (std::size_t member = 0; member < group(); ++member)
            for (std::size_t i = begin; i < end; ++i)
                if (!are_below(power(3), output(w, member, i), d_v_)) return false;
        return true;
    }

    /// Whether the chunk was computed; if not, the state is that before it. A chunk with operands,
    /// results or decays that are not finite, or so large that sums may overflow, is left to the
    /// steps.
    bool take_chunk(Worker& w) const {
        if (w.tokens < least_tokens || !w.is_moderate || !has_usable_operands(w) ||
            !w.decay.read(w.first, w.tokens))
            return false;
        w.packed_segment = none;
        for (std::size_t p = 0; p < panels_; ++p)
            std::copy_n(panel(w, p), d_k_ * lanes_, w.saved + p * d_k_ * lanes_);
        w.head.beta == nullptr ? copy_values(w) : solve(w);
        const auto [begin, end] = query_rows(w);
        for (std::size_t member = 0; begin < end && member < group(); ++member)
            read_outputs(w, member, begin, end);
        update_state(w);
        if (has_moderate_outputs(w) && has_moderate_state(w)) return true;
        for (std::size_t p = 0; p < panels_; ++p)
            std::copy_n(w.saved + p * d_k_ * lanes_, d_k_ * lanes_, panel(w, p));
        return false;
    }

    /// left[i] = factor_i [G_i x_i, x_i D_ij k_j for all j up to i], 0 for later j of i's block.
    /// Rows of x are d_k apart; `x` is that of row `begin`.
    template <class Factor>
    void set_left(Worker& w, const T* x, std::size_t begin, std::size_t end,
                  const Factor& factor) const {
        const ChunkDecay<T>& decay = w.decay;
        for (std::size_t s = 0; s < decay.segments(); ++s) {
            const auto [first, last] = decay.segment(s);
            const std::size_t from = std::max(first, begin), to = std::min(last, end);
            if (from >= to) continue;
            const T* rows = x + (from - begin) * d_k_;
            pack_keys(w, s);
            if (decay.by_dimension()) {
                for (std::size_t i = from; i < to; ++i)
                    decay.scale_row(i, rows + (i - from) * d_k_, w.scaled + (i - from) * d_k_);
                rows = w.scaled;
            }
            for (std::size_t key = 0; key < last; key += lanes_) {
                const std::size_t above = std::max(from, key);
                if (above < to)
                    multiply(to - above, d_k_, whole_vectors(std::min(lanes_, last - key)),
                             rows + (above - from) * d_k_, d_k_, w.packed + key * d_k_,
                             w.product + above * key_columns_ + key, key_columns_);
            }
        }
        for (std::size_t i = begin; i < end; ++i) {
            T* const row = w.left + i * left_stride_;
            const T times = factor(i);
            decay.from_start(i, x + (i - begin) * d_k_, times, row);
            decay.between(i, w.product + i * key_columns_, times, row + d_k_);
            std::fill(row + d_k_ + i + 1, row + d_k_ + end_of_block(i), T{0});
        }
    }

    static std::size_t end_of_block(std::size_t i) { return (i / block_rows + 1) * block_rows; }

    /// The keys up to the end of a segment as columns, in the form that its rows multiply.
    void pack_keys(Worker& w, std::size_t segment) const {
        if (w.packed_segment == segment) return;
        w.packed_segment = segment;
        const T* keys = w.head.key + w.first * d_k_;
        const std::size_t count = w.decay.segment(segment).second;
        if (w.decay.by_dimension()) {
            w.decay.scale_keys(segment, keys, w.scaled);
            keys = w.scaled;
        }
        const T* rows[chunk_tokens];
        for (std::size_t j = 0; j < count; ++j) rows[j] = keys + j * d_k_;
        for (std::size_t key = 0; key < count; key += lanes_)
            entries_.pack(rows + key, std::min(lanes_, count - key), d_k_, T{1},
                          w.packed + key * d_k_);
    }

    void copy_values(Worker& w) const {
        for (std::size_t p = 0; p < panels_; ++p)
            for (std::size_t i = 0; i < w.tokens; ++i) {
                T* const row = panel(w, p) + (d_k_ + i) * lanes_;
                std::copy_n(w.head.value + (w.first + i) * d_v_ + p * lanes_, columns_of(p), row);
                std::fill(row + columns_of(p), row + lanes_, T{0});
            }
    }

    /// The rows u of the delta rules, block by block.
    void solve(Worker& w) const {
        const T *const values = w.head.value + w.first * d_v_, *const beta = w.head.beta + w.first;
        set_left(w, w.head.key + w.first * d_k_, 0, w.tokens,
                 [&](std::size_t i) { return beta[i]; });
        for (std::size_t block = 0; block < w.tokens; block += block_rows) {
            const std::size_t rows = std::min(block_rows, w.tokens - block);
            T* const left = w.left + block * left_stride_;
            invert(left + d_k_ + block, rows, w.inverse);
            for (std::size_t p = 0; p < panels_; ++p) {
                const std::size_t columns = columns_of(p), whole = whole_vectors(columns);
                multiply(rows, d_k_ + block, whole, left, left_stride_, panel(w, p), w.product,
                         lanes_);
                for (std::size_t i = 0; i < rows; ++i) {
                    T* const row = w.product + i * lanes_;
                    const T* const value = values + (block + i) * d_v_ + p * lanes_;
                    for (std::size_t j = 0; j < columns; ++j)
                        row[j] = beta[block + i] * value[j] - row[j];
                }
                multiply(rows, rows, whole, w.inverse, block_rows, w.product,
                         panel(w, p) + (d_k_ + block) * lanes_, lanes_);
            }
        }
    }

    /// (I + L)^-1 for the part of L below the diagonal.
    void invert(const T* lower, std::size_t rows, T* inverse) const {
        std::fill_n(inverse, block_rows * block_rows, T{0});
        for (std::size_t i = 0; i < rows; ++i) {
            T* const row = inverse + i * block_rows;
            for (std::size_t m = 0; m < i; ++m) {
                const T factor = lower[i * left_stride_ + m];
                for (std::size_t j = 0; j < block_rows; ++j)  // of which those up to m are not 0
                    row[j] -= factor * inverse[m * block_rows + j];
            }
            row[i] = 1;
        }
    }

    void read_outputs(Worker& w, std::size_t member, std::size_t begin, std::size_t end) const {
        const T scale = static_cast<T>(call_.scale);
        set_left(w, query(w, member, begin), begin, end, [&](std::size_t) { return scale; });
        for (std::size_t from = begin; from < end;) {
            const std::size_t last = end_of_block(from), to = std::min(end, last);
            for (std::size_t p = 0; p < panels_; ++p)
                multiply(to - from, d_k_ + std::min(last, w.tokens), columns_of(p),
                         w.left + from * left_stride_, left_stride_, panel(w, p),
                         output(w, member, from) + p * lanes_, outputs_.context.row);
            from = to;
        }
    }

    void update_state(Worker& w) const {
        const T* const keys = w.head.key + w.first * d_k_;
        for (std::size_t j = 0; j < w.tokens; ++j) {
            const T* const decays = w.decay.to_end(j);
            for (std::size_t i = 0; i < d_k_; ++i)
                w.transposed[i * chunk_tokens + j] = keys[j * d_k_ + i] * decays[w.decay.column(i)];
        }
        for (std::size_t p = 0; p < panels_; ++p) {
            T* const state = panel(w, p);
            const std::size_t whole = whole_vectors(columns_of(p));
            multiply(d_k_, w.tokens, whole, w.transposed, chunk_tokens, state + d_k_ * lanes_,
                     w.product, lanes_);
            for (std::size_t i = 0; i < d_k_; ++i) {
                const T factor = w.decay.of_chunk()[w.decay.column(i)];
                for (std::size_t j = 0; j < whole; ++j)
                    state[i * lanes_ + j] =
                        factor * state[i * lanes_ + j] + w.product[i * lanes_ + j];
            }
        }
    }

    const kernels::Entries<T>& entries_;
    const AttentionCall<T>& call_;
    const LinearOutputs<T>& outputs_;
    std::size_t d_k_, d_v_, lanes_, panels_, chunk_, left_stride_, key_columns_;
};

}  // namespace

template <class T>
void attend_chunked(const kernels::Kernel& kernel, const AttentionCall<T>& call,
                    const LinearOutputs<T>& outputs, ThreadPool& pool) {
    const bool is_delta = call.recurrence.beta.size() != 0;
    if (is_delta && call.key.shape(3) < block_rows) return attend_sequential(call, outputs, pool);
    ChunkedHeads<T>(kernels::entries_of<T>(kernel), call, outputs).run(pool);
}

template void attend_chunked(const kernels::Kernel&, const AttentionCall<float>&,
                             const LinearOutputs<float>&, ThreadPool&);
template void attend_chunked(const kernels::Kernel&, const AttentionCall<double>&,
                             const LinearOutputs<double>&, ThreadPool&);

}  // namespace attn
