// Dropout masks: values, order of draws, rows by themselves.
#include "core/dropout.hpp"

#include <doctest/doctest.h>

#include "tests/support/support.hpp"

using namespace attn;

TEST_CASE("dropout: the mask of PyTorch for every seed on file") {
    const auto golden = test::load_data("golden/torch_random.json");
    for (const auto& recorded : golden["seeds"]) {
        const auto& seed = recorded["seed"];
        TorchGenerator generator(seed.is_number_unsigned()
                                     ? seed.get<std::uint64_t>()
                                     : static_cast<std::uint64_t>(seed.get<std::int64_t>()));
        const auto mask =
            dropout_mask<float>(0.2, DropoutStream::mt19937, {1, 1, 4, 5, 0, 4}, generator);
        const std::vector<double> expected = test::flat(recorded["dropout"]);
        for (std::size_t i = 0; i < expected.size(); ++i)
            CHECK(static_cast<double>(mask.data()[i]) == expected[i]);
    }
}

TEST_CASE("dropout: probabilities 0 and 1 draw nothing") {
    for (double p : {0.0, 1.0})
        for (DropoutStream stream : {DropoutStream::mt19937, DropoutStream::mkl}) {
            TorchGenerator used(9), fresh(9);
            const auto mask = dropout_mask<double>(p, stream, {2, 1, 3, 3, 0, 3}, used);
            for (double value : mask) CHECK(value == 1 - p);
            CHECK(used.draw32() == fresh.draw32());
        }
}

TEST_CASE("dropout: one row is that row of the whole mask, and the generator ends in one place") {
    for (DropoutStream stream : {DropoutStream::mt19937, DropoutStream::mkl}) {
        TorchGenerator for_whole(3);
        const auto whole = dropout_mask<float>(0.4, stream, {2, 3, 5, 7, 0, 5}, for_whole);
        const std::uint32_t next = for_whole.draw32();
        for (std::size_t row = 0; row < 5; ++row) {
            TorchGenerator for_row(3);
            const auto part = dropout_mask<float>(0.4, stream, {2, 3, 5, 7, row, 1}, for_row);
            for (std::size_t b = 0; b < 2; ++b)
                for (std::size_t h = 0; h < 3; ++h)
                    for (std::size_t k = 0; k < 7; ++k)
                        CHECK(part(b, h, 0, k) == whole(b, h, row, k));
            CHECK(for_row.draw32() == next);
        }
    }
}

TEST_CASE("dropout: the mkl stream takes one draw of the generator, however many elements") {
    TorchGenerator used(5), fresh(5);
    const auto mask = dropout_mask<float>(0.3, DropoutStream::mkl, {1, 1, 1, 4, 0, 1}, used);
    std::uint64_t x = fresh.draw32() % 2147483647u;
    for (float value : mask) {
        const bool kept = static_cast<double>(x) / 2147483647.0 < 0.7;
        CHECK(value == (kept ? 1.0f / 0.7f : 0.0f));
        x = x * 1132489760u % 2147483647u;
    }
    CHECK(used.draw32() == fresh.draw32());
}
