// JSON documents: trailing commas. Members are held against nlohmann_json by tests/fuzz. What is
// refused: cli/mistakes.tsv.
#include "io/read/json_document.hpp"
#include "tests/support/support.hpp"

namespace json_document_test {

using namespace attn;
using namespace attn::io;
using attn::test::error_of;

TEST_CASE("json: a trailing comma is reported as such, in any place") {
    const auto read_all = [](const std::string& text) {
        const Source source = test::make_source("f.json", text);
        const JsonDocument document(source);
        if (document.members().empty()) document.read_array(ArrayRules{});
        for (const JsonMember& member : document.members())
            document.holds_array(member) ? void(document.read_array(member, ArrayRules{}))
                                         : void(document.read_value(member));
    };
    for (const std::string whole :
         {"[[1, 2], [3, 4]]", "[[[1],[2]],[[3],[4]]]", "[[1,2],\n [3,4]\n]\n",
          R"({"inputs": [[1, 2], [3, 4]], "config": {"a": {"b": [1]}}, "x": "a,"})"}) {
        REQUIRE(error_of([&] { read_all(whole); }).empty());
        for (std::size_t at = 1; at <= whole.size(); ++at) {
            const std::size_t next = whole.find_first_not_of(" \n", at);
            const bool is_behind = next == std::string::npos,
                       closes =
                           !is_behind && std::string("]}").find(whole[next]) != std::string::npos;
            if (!closes && !is_behind) continue;
            for (const std::string comma : {",", ", ", ",\n"}) {
                std::string text = whole;
                text.insert(at, comma);
                const std::string expected =
                    test::make_source("f.json", text).location(at) +
                    ": a trailing comma; expected none before " +
                    (is_behind ? "the end" : "'" + whole.substr(next, 1) + "'");
                CHECK(error_of([&] { read_all(text); }) == expected);
            }
        }
    }
}

}  // namespace json_document_test
