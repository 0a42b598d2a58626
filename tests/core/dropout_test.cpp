// Dropout masks: values, order of draws, separate rows.
#include "core/operator/dropout.hpp"
#include "core/fused/tile_dropout.hpp"
#include "core/kernels/dispatch.hpp"
#include "tests/support/support.hpp"

namespace dropout_test {
namespace {

using namespace attn;

/// Decisions one at a time, as the double comparison of each element's uniform with 1 - p.
class KeepOneByOne {
public:
    KeepOneByOne(double p, DropoutStream stream, TorchGenerator generator)
        : keep_probability_(1 - p), generator_(generator) {
        if (stream == DropoutStream::mkl) mkl_.emplace(generator_.draw32());
    }

    double uniform() { return mkl_ ? mkl_->next() : generator_.uniform01<double>(); }
    bool next() { return uniform() < keep_probability_; }
    void skip(std::uint64_t count) { mkl_ ? mkl_->skip(count) : generator_.skip(2 * count); }

private:
    double keep_probability_;
    TorchGenerator generator_;
    std::optional<Mcg31> mkl_;
};

bool bit(const std::vector<std::uint64_t>& words, std::size_t i) {
    return ((words[i / 64] >> (i % 64)) & 1) != 0;
}

constexpr DropoutStream streams[] = {DropoutStream::mt19937, DropoutStream::mkl};

TEST_CASE("keep bits are the elements' own draws, over odd counts and skips, from every kernel") {
    for (const kernels::Kernel* kernel : kernels::supported())
        for (DropoutStream stream : streams)
            for (double p : {1e-20, 0.1, 0.5, 0.9, 1 - 0x1p-53})
                for (std::uint64_t seed : {1u, 77u}) {
                    TorchGenerator generator(seed);
                    generator.skip(seed);  // odd: pairs of draws lie across the engine's blocks
                    KeepOneByOne single(p, stream, generator);
                    KeepBits bits(p, stream, generator, kernel->table->draws);
                    for (std::size_t count : {1u, 63u, 64u, 65u, 311u, 312u, 313u, 1000u}) {
                        CAPTURE(kernel->name);
                        CAPTURE(p);
                        CAPTURE(count);
                        std::vector<std::uint64_t> words((count + 63) / 64, ~std::uint64_t{0});
                        bits.next(words.data(), count);
                        for (std::size_t i = 0; i < 64 * words.size(); ++i)
                            REQUIRE(bit(words, i) == (i < count && single.next()));
                        bits.skip(count + 5);
                        for (std::size_t i = 0; i < count + 5; ++i) single.next();
                    }
                }
}

TEST_CASE("keep bits far on are those of a generator that skipped as many draws") {
    for (const kernels::Kernel* kernel : kernels::supported())
        for (DropoutStream stream : streams)
            for (std::uint64_t count :
                 {311ull, 312ull, 4193968ull, 4194592ull, 1ull << 40, 1ull << 62})
                for (std::size_t before : {0u, 311u}) {
                    CAPTURE(kernel->name);
                    CAPTURE(count);
                    CAPTURE(before);
                    std::vector<std::uint64_t> words(10);
                    TorchGenerator generator(5);
                    KeepBits bits(0.3, stream, generator, kernel->table->draws);
                    bits.next(words.data(), before);
                    bits.skip(count);
                    bits.next(words.data(), 640);
                    KeepOneByOne single(0.3, stream, TorchGenerator(5));
                    single.skip(before + count);
                    for (std::size_t i = 0; i < 640; ++i) REQUIRE(bit(words, i) == single.next());
                }
}

TEST_CASE("an element is kept where its uniform is below 1 - p, and not where they are equal") {
    for (const kernels::Kernel* kernel : kernels::supported())
        for (DropoutStream stream : streams)
            for (std::uint64_t seed = 0; seed < 60; ++seed) {
                // The element whose uniform is met, and another, which is not touched by it.
                const std::uint64_t place = 5 * seed;
                KeepOneByOne drawn(0.5, stream, TorchGenerator(seed));
                drawn.skip(place);
                const double uniform = drawn.uniform();
                // mt19937: 1 - (1 - uniform) is uniform itself, a multiple of 2^-53.
                for (int step = -4; step <= 4; ++step) {
                    CAPTURE(kernel->name);
                    CAPTURE(seed);
                    CAPTURE(step);
                    const double p = 1 - uniform + step * 0x1p-53;
                    if (p <= 0 || p >= 1) continue;
                    std::vector<std::uint64_t> words(5);
                    TorchGenerator generator(seed);
                    KeepBits(p, stream, generator, kernel->table->draws).next(words.data(), 312);
                    CHECK(bit(words, place) == (uniform < 1 - p));
                    if (stream == DropoutStream::mt19937) CHECK(bit(words, place) == (step < 0));
                    KeepOneByOne single(p, stream, TorchGenerator(seed));
                    for (std::size_t i = 0; i < 312; ++i) REQUIRE(bit(words, i) == single.next());
                }
            }
}

TEST_CASE("dropout: the mask of PyTorch for every seed on file") {
    const auto golden = test::load_data("golden/torch_random.json");
    for (const auto& recorded : golden["seeds"]) {
        const TorchGenerator generator(test::seed_bits(recorded["seed"]));
        const auto mask = dropout_mask<float>(
            Dropout{0.2, DropoutStream::mt19937, false, 4, generator}, 0, {1, 1, 4, 5});
        const std::vector<double> expected = test::flat(recorded["dropout"]);
        for (std::size_t i = 0; i < expected.size(); ++i)
            CHECK(static_cast<double>(mask.data()[i]) == expected[i]);
    }
}

TEST_CASE("dropout: probabilities 0 and 1 need no generator") {
    for (double p : {0.0, 1.0})
        for (DropoutStream stream : streams)
            for (double value : dropout_mask<double>(Dropout{p, stream, false, 3}, 0, {2, 1, 3, 3}))
                CHECK(value == 1 - p);
}

}  // namespace
}  // namespace dropout_test
