// Shapes and kinds of arrays in text that is read in pieces; tests/fuzz compares all texts.
#include "io/read/csv.hpp"
#include "io/read/csv_parts.hpp"
#include "io/read/input_formats.hpp"
#include "io/read/json_document.hpp"
#include "tests/support/support.hpp"

namespace regular_text_test {
namespace {

using namespace attn;
using namespace attn::io;
using attn::io::Source;
using attn::test::error_of;
using attn::test::numbers_of;

using Shape = std::vector<std::size_t>;

ArrayRules rules_of(std::size_t lowest, std::size_t highest, bool words = false) {
    ArrayRules rules;
    rules.lowest_rank = lowest;
    rules.highest_rank = highest;
    rules.nonfinite = rules.boolean = words;
    return rules;
}

TEST_CASE("regular text: masks of words and of booleans are regular too") {
    const ArrayRules rules = rules_of(1, 4, true);
    const auto read = [&](const std::string& text) { return read_json_rows(text, rules); };
    REQUIRE(read("[[0,-Infinity],[\"-Infinity\", NaN]]"));
    CHECK(std::isnan(read("[[0,-Infinity],[\"-Infinity\", NaN]]")->values.data()[3]));
    REQUIRE(read("[[true,false],[false,true]]"));
    CHECK(read("[[true,false],[false,true]]")->boolean);
    CHECK_FALSE(read("[[true,false],[0,true]]"));
    CHECK_FALSE(read_json_rows("[[0,NaN]]", rules_of(1, 4)));
    CHECK_FALSE(read_json_rows("[[true]]", rules_of(1, 4)));
    const CsvRowStyle style{',', 2, false};
    CHECK(read_csv_rows("nan,-inf\n1.,+2\n", style, rules));
    CHECK_FALSE(read_csv_rows("nan,-inf\n1.,+2\n", style, rules_of(2, 2)));
}

TEST_CASE("csv: a comment gives the shape of the array") {
    const auto read = [](const std::string& text, const ArrayRules& rules) {
        return read_csv(test::make_source("f.csv", text), rules).matrix;
    };
    // Other shapes: the target `writers` of tests/fuzz, which reads what is written.
    for (const char* comment :
         {"# shape: 2, 2, 2\n", "#shape:2,2,2\n", "# note\n # shape :2 ,2,2 \r\n"}) {
        const NumberArray array =
            read(comment + std::string("1,2\n3,4\n5,6\n7,8\n \n"), rules_of(2, 3));
        CHECK(array.shape() == Shape{2, 2, 2});
        CHECK(numbers_of(array.values) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
    }
    CHECK(read("# a shape: 9\n# shapes: 9\n1,2\n3,4\n", rules_of(2, 3)).shape() == Shape{2, 2});
    CHECK(error_of([&] { read("# shape: 8\n1,2\n3,4\n", rules_of(1, 3)); }) ==
          "f.csv:1: shape (8) means 1 x 8 numbers; expected 2 x 2 as in the rows below it");
}

TEST_CASE("ndjson: lines are the first axis") {
    const auto read = [](const std::string& text, const ArrayRules& rules = rules_of(1, 4, true)) {
        const Source source = test::make_source("f.ndjson", text);
        std::string key;
        return document_of_lines(source, key)->read_array(rules);
    };
    CHECK(read("[1,2]\n[3,4]").shape() == Shape{2, 2});
    CHECK(read("[[1,2]]\n[[3,4]]\r\n[[5, 6]]\n").shape() == Shape{3, 1, 2});
    CHECK(read("\n[1,2]\n\n \r\n[3,4]\n").shape() == Shape{2, 2});
    CHECK(numbers_of(read("\n[1,2]\n\n[3,4]").values) == std::vector<double>{1, 2, 3, 4});
    CHECK(read("[[1,2],[3,4]]\n").shape() == Shape{1, 2, 2});
    CHECK(read("\n [1,2] \n\n").shape() == Shape{1, 2});
    CHECK(read("[true]\n[false]").boolean);
    const auto error = [&](const std::string& text, const ArrayRules& rules = rules_of(2, 3)) {
        return error_of([&] { read(text, rules); });
    };
    CHECK(error("[1]\n[2]", rules_of(1, 1)) ==
          "f.ndjson:1:1: an array nested deeper than 1; expected rank 1");
    CHECK(error("[1]\n[true]", rules_of(1, 2, true)) ==
          "f.ndjson:2:2: a boolean among numbers; expected a number");
}

TEST_CASE("ndjson: recognised if the first line holds a whole value and more lines follow") {
    for (const char* text : {"[1]\n[2]", "{\"a\":\"]\\\"\"}\n\n {}", "\n[[1],[2]] \r\n[[3],[4]]\n",
                             "[1]\n[", "{}\n[x"})
        CHECK(looks_like_ndjson(text));
    for (const char* text : {"[1]", "[1]\n", "[[1],\n[2]]", "[\n[1]]", "{\"a\":\n[1]}", "1,2\n3,4",
                             "[1] 2\n[3]", "[1]\nx", "\"a\"\n[1]", "[1],\n[2]", "", "[\"]\n[1]"})
        CHECK_FALSE(looks_like_ndjson(text));
}

}  // namespace
}  // namespace regular_text_test
