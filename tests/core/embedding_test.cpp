// How many words a text may have. Which words and ids: tests/fuzz/text.cpp; their vectors:
// golden_test.cpp.
#include "core/layer/embedding.hpp"
#include "tests/support/support.hpp"

namespace embedding_test {

using namespace attn;

TEST_CASE("words: there are at most two million") {
    std::string text;
    for (std::size_t i = 0; i < max_words; ++i) text += "a ";
    CHECK(split_words(text).ids.size() == max_words);
    CHECK_THROWS_AS(split_words(text + "a"), Error);
}

}  // namespace embedding_test
