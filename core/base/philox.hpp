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

/// The counters of neighbouring elements. A vector of 2^unit_shift counters is drawn from in order
/// by one thread, the next vector by the next thread, and after the last thread comes the next turn
/// of the first, which goes on to the next vector of counters after 2^turn_shift turns.
struct PhiloxRun {
    std::uint64_t key = 0;
    int rounds = 10;
    std::uint64_t first = 0;  ///< the counter of turn 0
    std::uint64_t unit = 0;   ///< of the run's first counter in its vector
    std::uint64_t thread = 0, threads = 1, turn = 0;
    unsigned unit_shift = 0, turn_shift = 0;
    /// The upper half of a counter is the thread, shifted, plus this.
    unsigned high_shift = 0;
    std::uint64_t high = 0;

    struct Counter {
        std::uint64_t low, high, turn;
    };
    /// That of counter i of the run, i at most the threads.
    constexpr Counter at(std::uint64_t i) const {
        const std::uint64_t n = unit + i, by = thread + (n >> unit_shift),
                            wraps = by >= threads ? 1 : 0, now = turn + wraps;
        return {first + (now >> turn_shift << unit_shift) +
                    (n & ((std::uint64_t{1} << unit_shift) - 1)),
                ((by - wraps * threads) << high_shift) + high, now};
    }
    /// Begins `count` counters later, at most as many as there are threads.
    constexpr void advance(std::uint64_t count) {
        unit += count;
        thread += unit >> unit_shift;
        unit &= (std::uint64_t{1} << unit_shift) - 1;
        if (thread < threads) return;
        thread -= threads;
        ++turn;
    }
    constexpr std::array<std::uint32_t, 4> words(const Counter& at) const {
        return philox(key, at.low, at.high, rounds);
    }
};

}  // namespace attn
