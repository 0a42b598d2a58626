// Philox4x32 (Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"): the
// generator of PyTorch's CUDA stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace attn {

/// Four words of 32 bits of the 128-bit counter (low, high) under a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t low,
                                              std::uint64_t high, int rounds = 10) {
    const auto lower = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
    const auto upper = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
    std::uint32_t x = lower(low), y = upper(low), z = lower(high), w = upper(high);
    std::uint32_t k0 = lower(key), k1 = upper(key);
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t of_x = std::uint64_t{0xd2511f53} * x,
                            of_z = std::uint64_t{0xcd9e8d57} * z;
        x = upper(of_z) ^ y ^ k0;
        z = upper(of_x) ^ w ^ k1;
        y = lower(of_z);
        w = lower(of_x);
        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
    return {x, y, z, w};
}

/// The counters of neighbouring elements: the upper half is the subsequence, the lower half its
/// offset. A thread draws from a vector of 2^unit_shift counters in order, the next thread from the
/// next vector. In the next iteration of the grid-stride loop each thread continues with the same
/// counters, or after 2^turn_shift iterations with the next ones.
struct PhiloxRun {
    std::uint64_t key = 0;
    int rounds = 10;          ///< or 7
    std::uint64_t first = 0;  ///< the offset in iteration 0
    std::uint64_t unit = 0;   ///< of the run's first counter in its vector
    std::uint64_t thread = 0, threads = 1, turn = 0;
    unsigned unit_shift = 0, turn_shift = 0;
    /// The subsequence is the thread, shifted, plus this.
    unsigned high_shift = 0;
    std::uint64_t high = 0;

    // Of the run's first counter:
    constexpr std::uint64_t offset() const {
        return first + (turn >> turn_shift << unit_shift) + unit;
    }
    constexpr std::uint64_t subsequence() const { return (thread << high_shift) + high; }
    constexpr std::array<std::uint32_t, 4> words() const {
        return philox(key, offset(), subsequence(), rounds);
    }

    /// Begins `count` counters later.
    constexpr void advance(std::uint64_t count) {
        unit += count;
        thread += unit >> unit_shift;
        unit &= (std::uint64_t{1} << unit_shift) - 1;
        for (; thread >= threads; thread -= threads) ++turn;
    }
};

}  // namespace attn
