// The generators of dropout and the decisions made from them, in vectors of 32-bit words; see
// kernel.hpp.
//
// An instruction set provides `Words`: its vector, of the compilers' vector type; for two
// consecutive vectors `even`, the words at even positions, and `last_three`, the vector that starts
// at the last three words of the first; `unpack_low` and `unpack_high`, the even and
// the odd lanes of 64 bits of two vectors in turn; `equal` and `below`, bit l of which compares
// lane l. `below` may take words as signed: it compares any two after `bias` is added to both.
#pragma once

#include "core/kernels/kernel.hpp"

namespace attn::kernels {
namespace {

/// The part that needs no special instructions.
template <class V>
struct PlainWords {
    using Vector = V;
    using Pairs [[gnu::vector_size(sizeof(V))]] = std::uint64_t;

    static constexpr std::uint32_t bias = 0;

    /// Those of the lower words of the pairs, in full.
    static Pairs products(Pairs a, Pairs b) { return (a & 0xffffffff) * (b & 0xffffffff); }

    /// A word of the next block from the word at its position, its successor and the one 397 ahead.
    static V twisted(V word, V successor, V ahead) {
        const V y = (word & 0x80000000u) | (successor & 0x7fffffffu);
        return ahead ^ (y >> 1) ^ (-(successor & 1) & 0x9908b0dfu);
    }
};

template <class Words>
struct DrawsBy {
    using V = typename Words::Vector;
    static constexpr std::size_t lanes = sizeof(V) / 4;
    static_assert(draw_slack % lanes == 0);

    static V load(const std::uint32_t* p) {
        V v;
        __builtin_memcpy(&v, p, sizeof v);
        return v;
    }
    static void store(V v, std::uint32_t* p) { __builtin_memcpy(p, &v, sizeof v); }

    static V tempered(V y) {
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        return y ^ (y >> 18);
    }

    static void twist(std::uint32_t* words, V ahead) {
        store(Words::twisted(load(words), load(words + 1), ahead), words);
    }

    /// In place. A word is computed from those 0, 1 and 397 positions ahead. From position 227 on,
    /// the last of these is a new word, 227 positions back. These are assembled from whole vectors,
    /// since recently stored data is slow to load at another alignment.
    static void step(std::uint32_t* words, std::size_t blocks) noexcept {
        constexpr std::size_t ahead = 397, behind = (draw_words - ahead) / lanes * lanes;
        static_assert(draw_words - ahead == behind + 3);
        for (; blocks != 0; --blocks) {
            V before = load(words + draw_words - lanes);
            for (std::size_t i = 0; i < behind; i += lanes)
                twist(words + i, load(words + i + ahead));
            words[draw_words] = words[0];
            for (std::size_t i = behind; i < draw_words; i += lanes) {
                const V next = load(words + i - behind);
                twist(words + i, Words::last_three(before, next));
                before = next;
            }
        }
    }

    static std::uint32_t tempered_word(std::uint32_t word) { return tempered(V{} + word)[0]; }

    /// Only the high halves are compared, unless one equals the limit's.
    static void keep_mt19937(const std::uint32_t* words, std::uint64_t limit,
                             std::uint64_t* bits) noexcept {
        const V limits = V{} + static_cast<std::uint32_t>(limit >> 32);
        std::uint64_t undecided = 0;
        for (std::size_t first = 0; first < draw_words / 2; first += 64) {
            std::uint64_t kept = 0;
            for (std::size_t i = 0; i < 64; i += lanes) {
                const std::uint32_t* from = words + 2 * (first + i);
                const V high = tempered(Words::even(load(from), load(from + lanes))) & 0x1fffff;
                kept |= Words::below(high, limits) << i;
                undecided |= Words::equal(high, limits);
            }
            bits[first / 64] = kept;
        }
        if (undecided != 0) keep_exactly(words, limit, bits);
        bits[draw_words / 2 / 64] &= (std::uint64_t{1} << (draw_words / 2 % 64)) - 1;
    }

    static void keep_exactly(const std::uint32_t* words, std::uint64_t limit, std::uint64_t* bits) {
        for (std::size_t i = 0; i < draw_words / 2; ++i) {
            const std::uint64_t high = tempered_word(words[2 * i]) & 0x1fffff;
            const bool kept = (high << 32 | tempered_word(words[2 * i + 1])) < limit;
            const std::uint64_t bit = std::uint64_t{1} << (i % 64);
            bits[i / 64] = kept ? bits[i / 64] | bit : bits[i / 64] & ~bit;
        }
    }

    static void keep_mcg31(std::uint32_t first, const std::uint32_t* powers, std::uint32_t limit,
                           std::uint64_t* bits) noexcept {
        constexpr std::uint32_t modulus = 0x7fffffff;
        std::uint32_t x[64];
        for (std::size_t i = 0; i < 64; ++i) {
            // 2^31 is congruent to 1: the high bits are added to the low ones.
            const std::uint64_t product = std::uint64_t{first} * powers[i];
            const std::uint32_t sum = (static_cast<std::uint32_t>(product) & modulus) +
                                      static_cast<std::uint32_t>(product >> 31);
            x[i] = sum < sum - modulus ? sum : sum - modulus;
        }
        const V limits = V{} + limit;
        *bits = 0;
        for (std::size_t i = 0; i < 64; i += lanes) *bits |= Words::below(load(x + i), limits) << i;
    }

    using Pairs = typename Words::Pairs;
    static constexpr std::size_t pairs = lanes / 2;

    /// use(words, i) for each vector of words of `calls` counters, which begins with word i. A lane
    /// of 64 bits holds a word of a counter in its lower half; what is in its upper one has no
    /// effect. Neighbouring lanes are of counters half a vector apart, so that unpacking puts words
    /// in order.
    template <class Use>
    static void each_words(PhiloxRun run, std::size_t calls, Use use) {
        constexpr std::size_t group = lanes == 16 ? 6 : lanes == 8 ? 3 : 4;  // by registers
        static_assert(philox_calls % (group * pairs) == 0);
        Pairs order{};
        for (std::size_t i = 0; i < pairs; ++i) order[i] = i / 2 + i % 2 * (pairs / 2);
        for (std::size_t begin = 0; begin < calls; begin += group * pairs) {
            Pairs x[group], y[group], z[group], w[group];
            const std::uint64_t mask = (std::uint64_t{1} << run.unit_shift) - 1,
                                past = run.unit + group * pairs - 1;
            const bool wraps = run.thread + (past >> run.unit_shift) >= run.threads;
#pragma GCC unroll 6
            for (std::size_t g = 0; g < group; ++g) {
                const Pairs n = order + (run.unit + g * pairs);
                Pairs by = (n >> run.unit_shift) + run.thread, turn = Pairs{} + run.turn;
                if (wraps) {
                    const Pairs does = Pairs(by >= Pairs{} + run.threads);
                    turn -= does;
                    by -= does & run.threads;
                }
                x[g] = (turn >> run.turn_shift << run.unit_shift) + run.first + (n & mask);
                z[g] = (by << run.high_shift) + run.high;
                y[g] = x[g] >> 32;
                w[g] = z[g] >> 32;
            }
            run.advance(group * pairs);
            Pairs k0 = Pairs{} + run.key, k1 = k0 >> 32;
            const int rounds = run.rounds == 7 ? 7 : 10;  // so that all are unrolled
#pragma GCC unroll 10
            for (int round = 0; round < rounds; ++round) {
#pragma GCC unroll 6
                for (std::size_t g = 0; g < group; ++g) {
                    const Pairs of_x = Words::products(x[g], Pairs{} + 0xd2511f53),
                                of_z = Words::products(z[g], Pairs{} + 0xcd9e8d57);
                    x[g] = (of_z >> 32) ^ y[g] ^ k0;
                    z[g] = (of_x >> 32) ^ w[g] ^ k1;
                    y[g] = of_z;
                    w[g] = of_x;
                }
                k0 += 0x9e3779b9;
                k1 += 0xbb67ae85;
            }
#pragma GCC unroll 6
            for (std::size_t g = 0; g < group; ++g) {
                const Pairs xy = (x[g] & 0xffffffff) | y[g] << 32,
                            zw = (z[g] & 0xffffffff) | w[g] << 32;
                const std::size_t first = 4 * (begin + g * pairs);
                use(V(Words::unpack_low(xy, zw)), first);
                use(V(Words::unpack_high(xy, zw)), first + lanes);
            }
        }
    }

    static void philox(const PhiloxRun& run, std::uint32_t* words) noexcept {
        each_words(run, philox_calls, [&](V some, std::size_t i) { store(some, words + i); });
    }

    static void keep_philox(const PhiloxRun& run, std::size_t calls, std::uint32_t first,
                            std::uint32_t last, std::uint64_t* bits) noexcept {
        const V least = V{} + (first - Words::bias), most = V{} + (last + Words::bias);
        std::uint64_t above = 0;
        each_words(run, calls, [&](V some, std::size_t i) {
            above |= Words::below(most, some - least) << (i % 64);
            if ((i + lanes) % 64 != 0) return;
            bits[i / 64] = ~above;
            above = 0;
        });
    }

    static constexpr Draws entries() {
        return {step, keep_mt19937, keep_mcg31, philox, keep_philox};
    }
};

}  // namespace
}  // namespace attn::kernels
