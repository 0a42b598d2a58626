// Words to ids to vectors. Which words and ids: tests/fuzz/text.cpp.
#include "core/layer/embedding.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/support.hpp"

namespace embedding_test {

using namespace attn;

TEST_CASE("words: there are at most two million") {
    std::string text;
    for (std::size_t i = 0; i < max_words; ++i) text += "a ";
    CHECK(split_words(text).ids.size() == max_words);
    CHECK_THROWS_AS(split_words(text + "a"), Error);
}

TEST_CASE("embedding: rows of nn.Embedding(7, 3), any order, repeated") {
    const auto golden = test::load_data("golden/torch_random.json");
    for (const auto& recorded : golden["seeds"]) {
        const std::uint64_t bits = test::seed_bits(recorded["seed"]);
        const std::vector<double> table = test::flat(recorded["embedding_7_3"]);
        const std::vector<std::int64_t> ids{6, 0, 3, 6};
        const Array<double> rows =
            embed(ids, 7, 3, Seed{bits, false}, Dtype::float32).take<double>();
        for (std::size_t i = 0; i < ids.size(); ++i)
            for (std::size_t j = 0; j < 3; ++j)
                CHECK(std::abs(rows(i, j) - table[static_cast<std::size_t>(ids[i]) * 3 + j]) <=
                      2e-6);
    }
}

}  // namespace embedding_test
