// Where a GPU's kernels draw the decisions of dropout.
//
// Source: PyTorch's aten/src/ATen/native/cuda/Dropout.cu, mem_eff_attention/kernel_forward.h and
// flash_attn/src/dropout.h; measured on an H100 (data/README.md).
#pragma once

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

    /// The index of a weight.
    struct At {
        std::size_t b, h, q, k;
    };
    /// The counters of a row from this weight on, each of unit() elements; with the kernel flash
    /// from the lane of k on, four lanes for each 32 keys.
    PhiloxRun run(const At& at) const;
    unsigned unit() const { return unit_; }
    /// The word of the run's first counter, and with the kernel flash the byte of it.
    unsigned word_of(const At& at, const PhiloxRun& run) const;
    static constexpr unsigned byte_of(std::size_t q, std::size_t k) {
        return static_cast<unsigned>(q % 16 / 8 * 2 + k % 2);
    }
    /// In the order of the draws of its call.
    std::uint64_t element(const At& at) const;
    bool draws_bytes() const { return draws_bytes_; }

    bool keeps(const At& at) const;
    /// A word w keeps its element if w - first() is at most last(), modulo 2^32; a byte if it is at
    /// most last(). If keeps_none(), none does.
    std::uint32_t first() const { return first_; }
    std::uint32_t last() const { return static_cast<std::uint32_t>(kept_ - 1); }
    bool keeps_none() const { return kept_ == 0; }

    /// The generator's, after the dropout.
    std::uint64_t end_offset() const {
        return offset_ + offset_of_call_ * (head_by_head_ ? heads_ : 1);
    }

private:
    std::uint64_t matrix(const At& at) const { return head_by_head_ ? at.b : at.b * heads_ + at.h; }

    PhiloxRun run_;  ///< of the first call, from its first element
    std::uint64_t offset_, offset_of_call_ = 0;
    bool head_by_head_, draws_bytes_;
    std::size_t heads_, q_len_, columns_;
    unsigned unit_ = 4;
    std::uint32_t first_ = 0;
    std::uint64_t kept_ = 0;  ///< words, or bytes, that keep an element
};

}  // namespace attn
