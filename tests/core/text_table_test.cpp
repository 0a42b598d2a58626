// The table of texts by hash, with as many equal hashes as a hostile file could have.
#include "core/base/text_table.hpp"
#include "tests/support/support.hpp"

namespace text_table_test {

TEST_CASE("text table: finds each text and no other, also of texts that share a slot") {
    std::vector<std::string> texts, others;
    // Of 300,000 texts, 70 or so begin their search at the same slot: more than it looks at.
    for (std::size_t i = 0; i < 300000; ++i) {
        std::string text = std::to_string(i * i) + std::string(i % 30, 'a');
        const bool shares = (std::hash<std::string_view>{}(text)&0xfff) == 7;
        (shares || i % 97 == 0 ? texts : others).push_back(std::move(text));
    }
    attn::TextTable table;
    const auto text_of = [&](std::uint32_t i) -> std::string_view { return texts[i]; };
    const auto find = [&](const std::string& text) {
        return table.find(text, [&](std::uint32_t i) { return texts[i] == text; });
    };
    for (std::uint32_t i = 0; i < texts.size(); ++i) {
        REQUIRE_FALSE(find(texts[i]));
        table.add(texts[i], i, text_of);
        REQUIRE(find(texts[i]) == i);
    }
    for (std::uint32_t i = 0; i < texts.size(); ++i) REQUIRE(find(texts[i]) == i);
    for (const std::string& text : others) REQUIRE_FALSE(find(text));
}

}  // namespace text_table_test
