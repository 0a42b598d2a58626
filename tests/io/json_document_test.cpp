// JSON documents and arrays: Python's words, trailing commas, strings. Members are held against
// nlohmann_json by tests/fuzz. What is refused: cli/mistakes.tsv.
#include "io/read/json_document.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/support/support.hpp"

namespace json_document_test {

using namespace attn;
using namespace attn::io;
using attn::test::error_of;
using attn::test::numbers_of;

namespace {

NumberArray read(const std::string& text, const ArrayRules& rules = {}) {
    const Source source = test::make_source("f.json", text);
    return JsonDocument(source).read_array(rules);
}

}  // namespace

TEST_CASE("json: Python's NaN and Infinity are read where the rules allow, else refused in place") {
    ArrayRules rules;
    rules.nonfinite = true;
    const auto values =
        read("[[NaN, Infinity, -Infinity, \"NaN\", \"Infinity\", \"-Infinity\"]]", rules).values;
    for (std::size_t i : {0u, 3u}) CHECK(std::isnan(values.data()[i]));
    for (std::size_t i : {1u, 4u}) CHECK((std::isinf(values.data()[i]) && values.data()[i] > 0));
    for (std::size_t i : {2u, 5u}) CHECK((std::isinf(values.data()[i]) && values.data()[i] < 0));
}

TEST_CASE("json: a number that rounds to the largest float32 does not overflow") {
    CHECK(numbers_of(read("[[3.40282356e38]]").values)[0] == 3.40282356e38);
}

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
