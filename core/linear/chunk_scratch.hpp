// What a worker of the chunked form keeps of its head, and the panels of its state.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/kernels/kernel.hpp"
#include "core/linear/chunk_decay.hpp"
#include "core/linear/recurrence.hpp"

namespace attn {

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

/// Sizes of a call, and the places that follow from them.
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
