// Words to ids to vectors.
#include "core/layer/embedding.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/support.hpp"

namespace embedding_test {

using namespace attn;

TEST_CASE("words: commas vanish, ids follow the sorted set") {
    const Words words = split_words("Life is short, eat dessert first");
    CHECK(words.tokens ==
          std::vector<std::string>{"Life", "is", "short", "eat", "dessert", "first"});
    CHECK(words.ids == std::vector<std::int64_t>{0, 4, 5, 2, 1, 3});
    CHECK(words.vocabulary == 6);
}

TEST_CASE("words: there are at most two million") {
    std::string text;
    for (std::size_t i = 0; i < max_words; ++i) text += "a ";
    CHECK(split_words(text).ids.size() == max_words);
    CHECK_THROWS_AS(split_words(text + "a"), Error);
}

TEST_CASE("words: a repeated word has one id") {
    const Words words = split_words("a rose is a rose");
    CHECK(words.ids == std::vector<std::int64_t>{0, 2, 1, 0, 2});
    CHECK(words.vocabulary == 3);
}

TEST_CASE("words: every white space of Python's str.split parts them, a comma alone does not") {
    CHECK(split_words("\t a\u00a0b\u3000c\u2028d \n").tokens ==
          std::vector<std::string>{"a", "b", "c", "d"});
    CHECK(split_words("a,b ,").tokens == std::vector<std::string>{"ab"});
    CHECK(split_words(" , ").tokens.empty());
}

TEST_CASE("words: sorted by code point, not by alphabet") {
    CHECK(split_words("\u00e9 z Z a").ids == std::vector<std::int64_t>{3, 2, 0, 1});
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
