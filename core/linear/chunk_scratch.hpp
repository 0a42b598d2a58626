// What a worker of the chunked form keeps of its head: the decays within a chunk of tokens, and the
// panels of its state.
#pragma once

#include "core/kernels/kernel.hpp"
#include "core/linear/recurrence.hpp"

namespace attn {

/// The most tokens of a chunk, a multiple of every vector's lanes. More take more arithmetic, fewer
/// more passes over the state. Delta rules with more tokens than dimensions of keys have
/// corrections that cancel, which costs digits.
inline constexpr std::size_t chunk_tokens = 16;

/// The decays of a chunk, e_i being the factor of token i, as products in the order of time.
///
/// One factor for all dimensions: a table of the products between any two tokens. One each: a
/// product of a query and a key with the decay between them is split into a factor of either, the
/// products of the factors from the chunk's start. A chunk ends where they would leave
/// [1 / range, range], so that dividing by them is safe.
template <class T>
class ChunkDecay {
public:
    /// Splitting multiplies and divides queries and keys by at most this.
    static constexpr T range = static_cast<T>(sizeof(T) == sizeof(float) ? 0x1p30 : 0x1p250);

    static std::size_t scratch_size(std::size_t d_k) {
        return chunk_tokens * (d_k + chunk_tokens) + d_k;
    }

    ChunkDecay() = default;
    ChunkDecay(const kernels::Entries<T>& entries, const HeadOperands<T>& head, T* scratch)
        : entries_(&entries), factors_(head.decay),
          columns_(head.decay == nullptr ? 1 : head.decay_columns), d_k_(head.d_k),
          between_(scratch), from_start_(scratch + chunk_tokens * chunk_tokens),
          buffer_(from_start_ + chunk_tokens * d_k_) {
        std::fill_n(from_start_, chunk_tokens, T{1});  // stays without decay
        for (std::size_t i = 0; i < chunk_tokens; ++i)
            for (std::size_t j = 0; j < chunk_tokens; ++j)
                between_[i * chunk_tokens + j] = j <= i ? T{1} : T{0};
    }

    bool by_dimension() const { return factors_ != nullptr && columns_ != 1; }

    /// Reads the factors of a chunk of at most `tokens` tokens, and returns how many it may have.
    std::size_t read(std::size_t first, std::size_t tokens) {
        tokens_ = tokens;
        growth_ = 1;
        if (factors_ == nullptr) return tokens;
        const T* const e = factors_ + first * columns_;
        if (by_dimension())
            tokens_ = entries_->running_products(e, tokens, d_k_, range, from_start_);
        const T most = entries_->largest(e, tokens_ * columns_);
        if (most > 1) measure_growth(e);
        if (by_dimension()) return tokens_;
        if (!(most <= range)) return 0;
        from_start_[0] = e[0];
        for (std::size_t i = 1; i < tokens; ++i) {
            from_start_[i] = from_start_[i - 1] * e[i];
            T* const row = between_ + i * chunk_tokens;
            const T* const before = row - chunk_tokens;
            for (std::size_t j = 0; j < i; ++j) row[j] = before[j] * e[i];
        }
        return tokens;
    }

    /// No decay between two tokens, or from the start, is larger. At least 1.
    T growth() const { return growth_; }

    /// Rows i from `begin` to `end` of x times the decay from the chunk's start up to token i. Both
    /// pointers are those of row `begin`.
    void scale_rows(std::size_t begin, std::size_t end, const T* x, T* out,
                    std::size_t out_stride) const {
        const std::size_t rows = end - begin, step = by_dimension() ? d_k_ : 1;
        const kernels::Scaling<T> scaling{rows, d_k_, x,         d_k_, from_start_ + begin * step,
                                          step, out,  out_stride};
        by_dimension() ? entries_->scale(scaling) : entries_->scale_rows(scaling);
    }

    /// The keys whose products with `left_rows` times `between` have the decay between them.
    const T* split_keys(const T* keys, T* buffer) const {
        if (!by_dimension()) return keys;
        entries_->unscale({tokens_, d_k_, keys, d_k_, from_start_, d_k_, buffer, d_k_});
        return buffer;
    }
    /// Whether rows to be multiplied by these keys are those of scale_rows.
    bool splits() const { return by_dimension(); }
    /// (tokens, chunk_tokens): the factors of the products, 0 after the diagonal.
    const T* between() const { return between_; }

    /// The state after the chunk is after (before S + keys^T u), where null is 1.
    struct Passing {
        const T *keys, *before, *after;
    };
    /// `split` is the result of split_keys.
    Passing pass(const T* split, T* buffer) const {
        if (factors_ == nullptr) return {split, nullptr, nullptr};
        const T* const last = from_start_ + (tokens_ - 1) * columns_;
        if (by_dimension()) return {split, nullptr, last};
        const T* const to_end = between_ + (tokens_ - 1) * chunk_tokens;
        entries_->scale_rows({tokens_, d_k_, split, d_k_, to_end, 1, buffer, d_k_});
        std::fill_n(buffer_, d_k_, *last);
        return {buffer, buffer_, nullptr};
    }

private:
    void measure_growth(const T* e) {
        std::fill_n(buffer_, columns_, T{1});
        for (std::size_t i = 0; i < tokens_; ++i)
            for (std::size_t d = 0; d < columns_; ++d) {
                const T product = buffer_[d] * e[i * columns_ + d];
                buffer_[d] = product > 1 ? product : T{1};
                growth_ = std::max(growth_, buffer_[d]);
            }
    }

    const kernels::Entries<T>* entries_ = nullptr;
    const T* factors_ = nullptr;
    std::size_t columns_ = 1, d_k_ = 0, tokens_ = 0;
    T growth_ = 1;
    T* between_ = nullptr;     // (chunk_tokens, chunk_tokens)
    T* from_start_ = nullptr;  // (chunk_tokens, columns)
    T* buffer_ = nullptr;      // (d_k)
};

/// The part of a worker. S and the rows u that tokens add to it are one above the other in panels
/// of the kernel's lanes, (d_k + chunk_tokens, lanes), so that a row of factors times both is one
/// product.
template <class T>
struct ChunkScratch {
    HeadOperands<T> head{};
    std::size_t index = 0;              ///< batch entry * kv_heads + key head
    std::size_t first = 0, tokens = 0;  ///< of the chunk
    ChunkDecay<T> decay{};
    T bound = 0;  ///< no magnitude in the state is larger; infinite if there may be a NaN

    T* right = nullptr;         ///< panels
    T* packed = nullptr;        ///< panels of (d_k, lanes): keys, one per column
    const T* split = nullptr;   ///< the rows that are packed
    T* split_buffer = nullptr;  ///< (chunk_tokens, d_k)
    T* passed = nullptr;        ///< (chunk_tokens, d_k): keys times the decay to the chunk's end
    T* left = nullptr;          ///< (chunk_tokens, left_stride): factors of S and u
    T* decays = nullptr;        ///< of ChunkDecay
    T *state = nullptr, *update = nullptr;  ///< (d_k, d_v) and (d_v), step by step
};

/// Sizes of a call, and the offsets that follow from them.
template <class T>
struct ChunkLayout {
    const kernels::Entries<T>& entries;
    std::size_t d_k, d_v;
    std::size_t lanes = entries.lanes;
    std::size_t panels = (d_v + lanes - 1) / lanes;
    std::size_t left_stride = d_k + chunk_tokens;

    /// Divides a worker's scratch into parts, aligned to 64 bytes; the size of all of them. Null:
    /// the size only.
    std::size_t divide(ChunkScratch<T>& w, T* scratch) const {
        std::size_t taken = 0;
        const auto take = [&](T*& part, std::size_t size) {
            part = scratch == nullptr ? nullptr : scratch + taken;
            taken += (size + 15) / 16 * 16;
        };
        take(w.right, panels * (d_k + chunk_tokens) * lanes);
        take(w.packed, d_k * ((chunk_tokens + lanes - 1) / lanes * lanes));
        take(w.split_buffer, chunk_tokens * d_k);
        take(w.passed, chunk_tokens * d_k);
        take(w.left, chunk_tokens * left_stride);
        take(w.decays, ChunkDecay<T>::scratch_size(d_k));
        take(w.state, d_k * d_v);
        take(w.update, d_v);
        return taken;
    }

    /// The columns of d_v in a panel.
    std::size_t columns_of(std::size_t p) const { return std::min(lanes, d_v - p * lanes); }
    T* panel(const ChunkScratch<T>& w, std::size_t p) const {
        return w.right + p * (d_k + chunk_tokens) * lanes;
    }
    kernels::ChunkPanel<T> product(const ChunkScratch<T>& w, std::size_t p) const {
        return {d_k, w.tokens, columns_of(p), w.left, left_stride, panel(w, p)};
    }
    /// The rows u of a panel.
    T* added(const ChunkScratch<T>& w, std::size_t p) const { return panel(w, p) + d_k * lanes; }

    /// Copies rows of d_v elements to a panel's rows from `out` on. Elements past the columns stay
    /// 0.
    void set_rows(const T* x, std::size_t rows, std::size_t p, T* out) const {
        static constexpr T one = 1;
        entries.scale_rows({rows, columns_of(p), x + p * lanes, d_v, &one, 0, out, lanes});
    }
    /// From the state to the panels, and back.
    void set_panels(ChunkScratch<T>& w) const {
        for (std::size_t p = 0; p < panels; ++p) set_rows(w.state, d_k, p, panel(w, p));
        measure(w);
    }
    void get_state(const ChunkScratch<T>& w) const {
        for (std::size_t p = 0; p < panels; ++p)
            for (std::size_t i = 0; i < d_k; ++i)
                std::copy_n(panel(w, p) + i * lanes, columns_of(p), w.state + i * d_v + p * lanes);
    }
    void measure(ChunkScratch<T>& w) const {
        w.bound = 0;
        for (std::size_t p = 0; p < panels; ++p)
            w.bound = std::max(w.bound, entries.largest(panel(w, p), d_k * lanes));
    }
};

}  // namespace attn
