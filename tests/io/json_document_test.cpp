// JSON documents: trailing commas, strings. Members are held against
// nlohmann_json by tests/fuzz. What is refused: cli/mistakes.tsv.
#include "io/read/json_document.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

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
                    test::make_source("f.json", text).place(at) +
                    ": a trailing comma; expected none before " +
                    (is_behind ? "the end" : "'" + whole.substr(next, 1) + "'");
                CHECK(error_of([&] { read_all(text); }) == expected);
            }
        }
    }
}

TEST_CASE("json: strings with escapes of every kind are read as the parser reads them, or by it") {
    const std::vector<std::string> parts{
        "a",       "\u00e9",  "\\n",     "\\\"",    "\\\\",
        "\\/",     "\\u0120", "\\u00E9", "\\u0000", "\\ud83d\\ude00",
        "\\ud83d", "\\ude00", "\\x",     "\\u12",   "\\u12g4",
        "\\u+123", "\\",      "\"",      "\t",      "\\b\\f\\r\\t"};
    std::size_t simple = 0;
    for (const std::string& first : parts)
        for (const std::string& second : parts)
            for (const std::string& third : parts) {
                const std::string text = '"' + first + second + third + '"';
                CAPTURE(text);
                const auto read = simple_string(text);
                if (!read) continue;
                ++simple;
                const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
                REQUIRE(parsed.is_string());
                CHECK(*read == parsed.get<std::string>());
            }
    CHECK(simple >= 10 * 10 * 10);
    for (const char* other : {"", "\"", "a", "\"a", "a\"", "1", "[\"a\"]"})
        CHECK_FALSE(simple_string(other));
}

}  // namespace json_document_test
