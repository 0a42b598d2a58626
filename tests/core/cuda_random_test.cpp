// Philox against published vectors, and every kernel's words and decisions against the scalar
// forms. The draws against a GPU's: cuda_random_test.py.
#include "core/fused/tile_dropout.hpp"
#include "core/kernels/dispatch.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/support.hpp"

namespace cuda_random_test {

using namespace attn;

std::uint64_t bits_of(test::Dice& dice) {
    const std::uint64_t high = dice.below(std::size_t{1} << 32);
    return high << 32 | dice.below(std::size_t{1} << 32);
}

// Source: Random123, tests/kat_vectors.
TEST_CASE("philox has the published words") {
    constexpr std::uint64_t ones = ~std::uint64_t{0};
    CHECK(philox(0, 0, 0) == std::array{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
    CHECK(philox(ones, ones, ones) ==
          std::array{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
    CHECK(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e) ==
          std::array{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
    CHECK(philox(0, 0, 0, 7) == std::array{0x5f6fb709u, 0x0d893f64u, 0x4f121f81u, 0x4f730a48u});
}

TEST_CASE("every kernel has the words of a run's counters, and what is kept by them") {
    test::Dice dice(1);
    for (int question = 0; question < 400; ++question) {
        PhiloxRun run{
            .key = bits_of(dice), .rounds = dice.one_in(3) ? 7 : 10, .first = bits_of(dice)};
        run.unit_shift = dice.among({0u, 0u, 1u, 2u, 63u});
        run.unit = bits_of(dice) & ((std::uint64_t{1} << run.unit_shift) - 1) >> 1;
        run.threads = run.unit_shift == 63 ? 1 : 256 * dice.size(1, 2000);
        run.thread = run.unit_shift == 63 ? 0
                     : dice.one_in(2)     ? run.threads - dice.size(1, 40)
                                          : dice.size(0, run.threads - 1);
        run.turn = dice.size(0, 9);
        run.turn_shift = dice.among({0u, 1u, 2u});
        if (dice.one_in(3)) run.high_shift = 32;
        run.high = dice.size(0, 100);
        const auto first = static_cast<std::uint32_t>(dice.one_in(2) ? 0 : bits_of(dice)),
                   last = static_cast<std::uint32_t>(bits_of(dice));
        const std::size_t calls = kernels::philox_calls * dice.size(1, 3);
        for (const kernels::Kernel* kernel : kernels::supported()) {
            CAPTURE(kernel->name);
            CAPTURE(question);
            std::vector<std::uint32_t> words(4 * kernels::philox_calls);
            std::vector<std::uint64_t> kept(calls / 16);
            kernel->table->draws.philox(run, words.data());
            kernel->table->draws.keep_philox(run, calls, first, last, kept.data());
            PhiloxRun scalar = run;
            for (std::size_t i = 0; i < calls; ++i, scalar.advance(1)) {
                const auto expected = scalar.words();
                for (std::size_t w = 0; w < 4; ++w) {
                    if (4 * i + w < words.size()) REQUIRE(words[4 * i + w] == expected[w]);
                    REQUIRE((kept[i / 16] >> (4 * i + w) % 64 & 1) ==
                            (expected[w] - first <= last ? 1 : 0));
                }
            }
        }
    }
}

TEST_CASE("decisions of a row, from any element on, are those of its elements") {
    test::Dice dice(2);
    for (int question = 0; question < 300; ++question) {
        const std::size_t batch = dice.size(1, 3), heads = dice.size(1, 3);
        const std::size_t columns = dice.one_in(3) ? dice.size(1, 900) : dice.size(1, 70);
        Dropout d{dice.among({1e-12, 0.1, 0.3, 0.5, 0.9, 1 - 1e-12}), DropoutStream::cuda,
                  dice.one_in(3), dice.size(1, 40)};
        // The least of threads makes turns.
        d.cuda =
            CudaGenerator(bits_of(dice), {dice.one_in(2) ? 1u : 132u, 256}, 4 * dice.size(0, 99));
        d.element_size = dice.among({2u, 4u, 8u});
        if (dice.one_in(2))
            d.kernel =
                dice.among({DropoutKernel::math, DropoutKernel::efficient, DropoutKernel::flash});
        const CudaDropout dropout(d, batch, heads, columns);
        const std::size_t b = dice.size(0, batch - 1), h = dice.size(0, heads - 1),
                          q = dice.size(0, d.q_len - 1), k = dice.size(0, columns - 1),
                          count = dice.size(1, columns - k);
        for (const kernels::Kernel* kernel : kernels::supported()) {
            CAPTURE(kernel->name);
            CAPTURE(question);
            std::vector<std::uint64_t> bits((count + 63) / 64, ~std::uint64_t{0});
            cuda_keep_bits(dropout, kernel->table->draws, {b, h, q, k}, bits.data(), count);
            for (std::size_t i = 0; i < 64 * bits.size(); ++i)
                REQUIRE((bits[i / 64] >> (i % 64) & 1) ==
                        (i < count && dropout.keeps({b, h, q, k + i}) ? 1 : 0));
        }
    }
}

}  // namespace cuda_random_test
