// The generator against the standard's own, and every way to skip draws. The draws against
// PyTorch's: drawn_input_test.cpp.
#include "core/base/torch_random.hpp"

#include <tuple>

#include "tests/support/support.hpp"

namespace torch_random_test {

using namespace attn;

TEST_CASE("Mt19937 is std::mt19937 over several blocks, drawn and skipped") {
    for (std::uint32_t seed : {0u, 1u, 5489u, 0xffffffffu}) {
        Mt19937 ours(seed);
        std::mt19937 standard(seed);
        for (std::size_t count : {1u, 622u, 1u, 1u, 623u, 624u, 625u, 1248u, 100u, 3000u}) {
            CAPTURE(seed);
            CAPTURE(count);
            for (std::size_t i = 0; i < count; ++i) REQUIRE(ours.draw() == standard());
            ours.skip(count);
            standard.discard(count);
        }
    }
}

TEST_CASE("seeds in any order: rising, again, back, by steps, over the end of 32 bits") {
    std::uint32_t seed = 0xfffffff0u;
    for (std::uint32_t i = 0; i < 200; ++i) {
        const std::uint32_t steps[] = {1, 1, 1, 0, 1, 1, 7, 8, 9, 0xffffffffu, 1, 2};
        CAPTURE(seed);
        Mt19937 ours(seed);
        std::mt19937 standard(seed);
        for (std::size_t draw = 0; draw < 625; ++draw) REQUIRE(ours.draw() == standard());
        seed += i < 40 ? 1 : steps[i % std::size(steps)];
    }
}

TEST_CASE("a tensor of normals read in pieces is the tensor read whole") {
    for (std::uint64_t count : {9u, 16u, 37u, 64u, 1001u}) {
        CAPTURE(count);
        std::vector<float> whole(count);
        NormalStream<float>(TorchGenerator(5), count).read(0, whole);
        NormalStream<float> stream(TorchGenerator(5), count);
        for (std::uint64_t first = 0; first < count; first += 4) {
            std::vector<float> piece(std::min<std::uint64_t>(3, count - first));
            stream.read(first, piece);
            for (std::size_t i = 0; i < piece.size(); ++i) CHECK(piece[i] == whole[first + i]);
        }
    }
}

TEST_CASE("normals far into a large tensor are those that so many draws lead to") {
    const std::uint64_t count = std::uint64_t{1} << 62, first = count - 40;
    std::vector<double> far(16), near(16);
    NormalStream<double>(TorchGenerator(5), count).read(first - first % 16, far);
    TorchGenerator generator(5);
    generator.skip(2 * (first - first % 16));
    NormalStream<double>(generator, count).read(0, near);
    CHECK(far == near);
}

TEST_CASE("skipping is as many steps, at any place of a block, few or millions") {
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> counts{0,    1,       623,     624,     625,
                                      5000, 2097151, 2097152, 2097153, 10000000};
    for (int i = 0; i < 12; ++i) counts.push_back(random() % (std::uint64_t{1} << (8 + i)));
    for (std::uint64_t count : counts) {
        const auto seed = static_cast<std::uint32_t>(random());
        const std::uint64_t before = random() % 1300;
        CAPTURE(count);
        CAPTURE(seed);
        CAPTURE(before);
        Mt19937 ours(seed);
        std::mt19937 standard(seed);
        for (std::uint64_t i = 0; i < before; ++i) ours.draw();
        ours.skip(count);
        standard.discard(before + count);
        for (int i = 0; i < 1300; ++i) REQUIRE(ours.draw() == standard());
    }
}

TEST_CASE("far positions are those that NumPy's outputs and a recurrence found in them give") {
    // The recurrence by Berlekamp and Massey's algorithm from 40200 outputs, x^n by Python's
    // integers, the sum over the first outputs of seed 5489.
    const std::tuple<std::uint64_t, std::uint32_t, std::uint32_t> known[] = {
        {10000000u, 1812463655u, 2263358686u},
        {1000000000000u, 2948162034u, 2002140012u},
        {1000000000000000000u, 2268990717u, 1422450214u},
        {std::uint64_t{1} << 63, 2901213308u, 1845510801u},
        {~std::uint64_t{0}, 2381927529u, 2170487254u}};
    for (const auto& [count, first, second] : known) {
        TorchGenerator generator(5489);
        generator.skip(count);
        CHECK(generator.draw32() == first);
        CHECK(generator.draw32() == second);
    }
}

TEST_CASE("MCG31: first elements by hand, and a jump is as many steps") {
    Mcg31 one(1);
    CHECK(one.next() == 1.0 / 2147483647.0);
    CHECK(one.next() == 1132489760.0 / 2147483647.0);
    CHECK(one.next() ==
          static_cast<double>(1132489760ull * 1132489760ull % 2147483647ull) / 2147483647.0);
    CHECK(Mcg31(0).next() == Mcg31(1).next());
    CHECK(Mcg31(2147483647u).next() == Mcg31(1).next());
    for (std::uint64_t count : {0u, 1u, 2u, 63u, 64u, 65u, 1000u}) {
        Mcg31 jumped(77), stepped(77);
        jumped.skip(count);
        for (std::uint64_t i = 0; i < count; ++i) stepped.next();
        CHECK(jumped.next() == stepped.next());
    }
}

}  // namespace torch_random_test
