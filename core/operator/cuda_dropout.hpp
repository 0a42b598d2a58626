// Where a GPU's kernels draw the decisions of dropout.
//
// Source: PyTorch's aten/src/ATen/native/cuda/Dropout.cu, mem_eff_attention/kernel_forward.h and
// flash_attn/src/dropout.h; measured on an H100 (data/README.md).
#pragma once

#include <algorithm>

#include "core/operator/dropout.hpp"

namespace attn {

/// The dropout of weights (batch, heads, q_len, columns) on a GPU, 0 < p < 1. A call of F.dropout,
/// and so of the kernel math, reads vectors of V elements, as many as 16 bytes hold and as divide
/// their number; element i of vector v is drawn by thread v mod T. The kernel efficient draws a
/// word for each element in their order, all by one thread. The kernel flash draws bytes by Philox
/// of 7 rounds: each lane of a warp 16 of them for a block of 16 queries and 32 keys.
class CudaDropout {
public:
    CudaDropout(const Dropout& dropout, std::size_t batch, std::size_t heads, std::size_t columns);

    /// The counters of a row from element k on, each of unit() elements; with the kernel flash from
    /// the lane of k on, four lanes for each 32 keys.
    PhiloxRun run(std::size_t b, std::size_t h, std::size_t q, std::size_t k) const;
    unsigned unit() const { return std::min(vector_, 4u); }
    /// Of element k, the word of its counter in this turn, and with the kernel flash the byte of
    /// it.
    unsigned word_of(std::size_t b, std::size_t h, std::size_t q, std::size_t k,
                     std::uint64_t turn) const;
    static constexpr unsigned byte_of(std::size_t q, std::size_t k) {
        return static_cast<unsigned>(q % 16 / 8 * 2 + k % 2);
    }
    /// In the order of the draws of its call.
    std::uint64_t element(std::size_t b, std::size_t h, std::size_t q, std::size_t k) const;
    bool draws_bytes() const { return draws_bytes_; }

    bool keeps(std::size_t b, std::size_t h, std::size_t q, std::size_t k) const;
    /// A word w keeps its element if w - first() is at most last(), modulo 2^32; a byte if it is at
    /// most last(). If keeps_none(), none does.
    std::uint32_t first() const { return first_; }
    std::uint32_t last() const { return last_; }
    bool keeps_none() const { return keeps_none_; }

    /// The generator's, after the dropout.
    std::uint64_t end_offset() const { return end_offset_; }

private:
    PhiloxRun run_;  ///< of the first call, from its first element
    std::uint64_t offset_;
    bool head_by_head_, draws_bytes_;
    std::size_t heads_, q_len_, columns_;
    unsigned vector_ = 4;  ///< elements that one thread reads together
    std::uint64_t offset_of_call_ = 0, end_offset_ = 0;
    std::uint32_t first_ = 0, last_ = 0;
    bool keeps_none_ = false;
};

}  // namespace attn
