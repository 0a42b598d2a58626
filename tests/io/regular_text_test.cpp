// Regular texts, read in pieces on several threads: the same values and errors as one by one.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <random>

#include "io/read/csv.hpp"
#include "io/read/csv_rows.hpp"
#include "io/read/json_array.hpp"
#include "io/read/json_document.hpp"
#include "io/read/json_rows.hpp"
#include "io/read/ndjson.hpp"
#include "tests/support/sample.hpp"
#include "tests/support/support.hpp"

namespace regular_text_test {

using namespace attn;
using namespace attn::io;
using attn::io::Source;
using attn::test::error_of;
using attn::test::numbers_of;

namespace {

using Shape = std::vector<std::size_t>;

ArrayRules rules_of(std::size_t lowest, std::size_t highest, bool words = false) {
    ArrayRules rules;
    rules.lowest_rank = lowest;
    rules.highest_rank = highest;
    rules.nonfinite = rules.boolean = words;
    return rules;
}

std::string random_number(std::mt19937& random) {
    static const std::vector<std::string> odd{"0",
                                              "-0",
                                              "1e-45",
                                              "3e38",
                                              "1e-300",
                                              "12345678901",
                                              "0.1000000000000000055511151231257827",
                                              "2.5E+3"};
    if (random() % 8 == 0) return odd[random() % odd.size()];
    std::string text = std::to_string(random() % 20) + "." + std::to_string(random());
    return (random() % 2 == 0 ? "-" : "") + text;
}

/// A nested list with random white space around its marks.
std::string json_text(const Shape& shape, std::mt19937& random, bool spaced, std::size_t axis = 0) {
    if (axis == shape.size()) return random_number(random);
    const auto space = [&] {
        return std::string(spaced && random() % 4 == 0 ? (random() % 2 == 0 ? " " : "\n\t") : "");
    };
    std::string text = "[" + space();
    for (std::size_t i = 0; i < shape[axis]; ++i)
        text +=
            (i == 0 ? "" : space() + "," + space()) + json_text(shape, random, spaced, axis + 1);
    return text + space() + "]";
}

std::string csv_text(std::size_t rows, std::size_t columns, const std::string& separator,
                     const std::string& line_end, bool labelled, std::mt19937& random) {
    std::string text;
    for (std::size_t row = 0; row < rows; ++row) {
        if (labelled) text += "word" + std::to_string(row) + separator;
        for (std::size_t i = 0; i < columns; ++i)
            text += (i == 0 ? "" : separator) + random_number(random);
        text += line_end;
    }
    return text;
}

/// Bits, as -0 and 0 are equal numbers.
bool same(const NumberArray& a, const NumberArray& b) {
    if (a.shape() != b.shape() || a.boolean != b.boolean) return false;
    for (std::size_t i = 0; i < a.values.size(); ++i)
        if (std::bit_cast<std::uint64_t>(a.values.data()[i]) !=
            std::bit_cast<std::uint64_t>(b.values.data()[i]))
            return false;
    return true;
}

/// One to three changes of a byte, each to a mark of the formats.
std::string mutated(std::string text, std::mt19937& random) {
    static const std::string marks = "[],,\n \t\r0123456789.-+eE\"#nNtrue;{}:";
    for (std::size_t i = 1 + random() % 3; i > 0 && !text.empty(); --i) {
        const std::size_t at = random() % text.size();
        const char mark = marks[random() % marks.size()];
        switch (random() % 4) {
            case 0: text[at] = mark; break;
            case 1: text.insert(at, 1, mark); break;
            case 2: text.erase(at, 1 + random() % 3); break;
            default: text.insert(at, text.substr(random() % text.size(), random() % 9)); break;
        }
    }
    return text;
}

/// Where the fast reader takes a text, the careful one has to give the same numbers.
template <class Fast, class Careful>
bool agree(const std::string& text, Fast fast, Careful careful) {
    const std::optional<NumberArray> read = fast();
    if (!read) return false;
    CAPTURE(text);
    NumberArray expected;
    CHECK(error_of([&] { expected = careful(); }) == "");
    CHECK(same(*read, expected));
    return true;
}

bool agree_json(const std::string& text, const ArrayRules& rules, ThreadPool* workers,
                std::size_t piece) {
    const Source source{"f", text};
    return agree(
        text, [&] { return read_json_rows(text, rules, Outermost::list, workers, piece); },
        [&] {
            JsonArrayReader reader(source, 0, rules);
            NumberArray array = reader.read();
            CHECK(reader.end() == text.size());
            return array;
        });
}

/// A blank line at the end stops the fast reader, and nothing else.
LabelledMatrix read_csv_one_by_one(const std::string& text, const ArrayRules& rules,
                                   const CsvStyle& style) {
    return read_csv(test::make_source("f", text + "\n "), rules, style);
}

}  // namespace

TEST_CASE("regular text: json of every rank, piece size and number of threads is read as written") {
    std::mt19937 random(1);
    for (const Shape& shape :
         {Shape{1}, Shape{7}, Shape{1, 1}, Shape{3, 2}, Shape{40, 1}, Shape{9, 13}, Shape{2, 3, 4},
          Shape{5, 1, 2}, Shape{1, 1, 1}, Shape{2, 3, 1, 5}})
        for (std::size_t threads : {1u, 2u, 5u})
            for (std::size_t piece : {1u, 7u, 64u, 100000u})
                for (bool spaced : {false, true}) {
                    ThreadPool workers(threads);
                    const std::string text = json_text(shape, random, spaced);
                    CHECK(agree_json(text, rules_of(1, 4), &workers, piece));
                    CHECK(read_json_rows(text, rules_of(1, 4))->shape() == shape);
                }
}

TEST_CASE("regular text: json with something else in it is taken right or not at all") {
    std::mt19937 random(2);
    ThreadPool workers(2);
    const std::vector<Shape> shapes{{5}, {4, 3}, {2, 3, 2}, {2, 2, 2, 2}};
    std::size_t taken = 0;
    for (std::size_t i = 0; i < test::cases(40000); ++i) {
        const std::string text =
            mutated(json_text(shapes[random() % shapes.size()], random, true), random);
        const bool words = random() % 2 == 0;
        if (agree_json(text, rules_of(1 + random() % 2, 2 + random() % 3, words),
                       i % 2 == 0 ? &workers : nullptr, 1 + random() % 40))
            ++taken;
    }
    CHECK(taken > test::cases(1000));
    CHECK(taken < test::cases(30000));
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

TEST_CASE("regular text: csv with every separator, line end and piece size is read as written") {
    std::mt19937 random(3);
    const CsvStyle numbers{Guess::no, Guess::no}, labels{Guess::no, Guess::yes};
    for (const char* separator : {",", ";", "\t", " ", " ,  "})
        for (const char* line_end : {"\n", "\r\n", " \n"})
            for (std::size_t threads : {1u, 2u, 5u})
                for (std::size_t piece : {1u, 9u, 50u, 100000u})
                    for (bool labelled : {false, true}) {
                        ThreadPool workers(threads);
                        const std::string text = csv_text(1 + random() % 20, 2 + random() % 5,
                                                          separator, line_end, labelled, random);
                        CAPTURE(text);
                        const CsvStyle& style = labelled ? labels : numbers;
                        const LabelledMatrix read =
                            read_csv(test::make_source("f", text), {}, style, &workers, piece);
                        const LabelledMatrix expected = read_csv_one_by_one(text, {}, style);
                        CHECK(same(read.matrix, expected.matrix));
                        CHECK(read.labels == expected.labels);
                    }
}

TEST_CASE("regular text: csv with something else in it is taken right or not at all") {
    std::mt19937 random(4);
    ThreadPool workers(2);
    std::size_t taken = 0;
    for (std::size_t i = 0; i < test::cases(30000); ++i) {
        const bool labelled = random() % 2 == 0;
        const char separator = ",;\t "[random() % 4];
        const std::string text = mutated(
            csv_text(1 + random() % 5, 3, std::string(1, separator), "\n", labelled, random),
            random);
        const ArrayRules rules = rules_of(2, 2, random() % 2 == 0);
        const CsvStyle style{Guess::no, labelled ? Guess::yes : Guess::no};
        CAPTURE(text);
        LabelledMatrix read, expected;
        const std::size_t piece = 1 + random() % 40;
        const auto outcome = [&](const std::string& given, LabelledMatrix& matrix) {
            return error_of([&] {
                matrix = read_csv(test::make_source("f", given), rules, style, &workers, piece);
            });
        };
        const std::string error = outcome(text, read);
        const std::string expected_error = outcome(text + "\n ", expected);
        CHECK(error == expected_error);
        CHECK(same(read.matrix, expected.matrix));
        CHECK(read.labels == expected.labels);
        if (error.empty()) ++taken;
    }
    CHECK(taken > test::cases(1000));
}

TEST_CASE("csv: a comment gives the shape of the array") {
    const auto read = [](const std::string& text, const ArrayRules& rules) {
        return read_csv(test::make_source("f.csv", text), rules).matrix;
    };
    const std::string rows = "1,2\n3,4\n5,6\n7,8\n";
    for (const char* comment :
         {"# shape: 2, 2, 2\n", "#shape:2,2,2\n", "# note\n # shape :2 ,2,2 \r\n"})
        for (const char* end : {"", " \n"}) {
            const NumberArray array = read(comment + rows + end, rules_of(2, 3));
            CHECK(array.shape() == Shape{2, 2, 2});
            CHECK(numbers_of(array.values) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
        }
    CHECK(read("# shape: 3\n1,2,3\n", rules_of(1, 2)).shape() == Shape{3});
    CHECK(read("# shape: 1,1,4,2\n" + rows, rules_of(1, 4)).shape() == Shape{1, 1, 4, 2});
    CHECK(read("# a shape: 9\n# shapes: 9\n" + rows, rules_of(2, 3)).shape() == Shape{4, 2});
    const auto error = [&](const std::string& comment, const ArrayRules& rules) {
        return error_of([&] { read(comment + "\n" + rows, rules); });
    };
    CHECK(error("\n# shape: 3, 2, 2", rules_of(2, 3)) ==
          "f.csv:2: shape (3, 2, 2) means 6 x 2 numbers; expected 4 x 2 as in the rows below it");
    CHECK(error("# shape: 2, 4", rules_of(2, 3)) ==
          "f.csv:1: shape (2, 4) means 2 x 4 numbers; expected 4 x 2 as in the rows below it");
    CHECK(error("# shape: 8", rules_of(1, 3)) ==
          "f.csv:1: shape (8) means 1 x 8 numbers; expected 4 x 2 as in the rows below it");
    CHECK(error("# shape: 8", rules_of(2, 3)) ==
          "f.csv:1: shape (8) has rank 1; expected rank 2 to 3");
    CHECK(error("# shape: 2, 2, 2", rules_of(2, 2)) ==
          "f.csv:1: shape (2, 2, 2) has rank 3; expected rank 2");
    CHECK(error("# shape: 2, x", rules_of(2, 2)) ==
          "f.csv:1: found ' 2, x'; expected the lengths of the axes, as in # shape: 2, 6, 3");
    CHECK(error("# shape: 0, 2", rules_of(2, 2)) ==
          "f.csv:1: found ' 0, 2'; expected the lengths of the axes, as in # shape: 2, 6, 3");
    CHECK(error("# shape: 4, 2\n# shape: 4, 2", rules_of(2, 2)) ==
          "f.csv:2: a second shape; expected one, as in line 1");
}

TEST_CASE("ndjson: lines are the first axis") {
    const auto read = [](const std::string& text, const ArrayRules& rules = rules_of(1, 4, true)) {
        const Source source = test::make_source("f.ndjson", text);
        NumberArray array = read_ndjson_array(source, rules);
        ThreadPool workers(3);
        CHECK(same(read_ndjson_array(source, rules, &workers, 3), array));
        return array;
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
    CHECK(error("[1,2]\n[3]") ==
          "f.ndjson:2:1: a list of shape (1); expected (2) as on the first line");
    CHECK(error("[1,2]\n[3,x]") == "f.ndjson:2:4: found 'x'; expected a number");
    CHECK(error("[1,2]\n[3,4] 5") == "f.ndjson:2:7: found '5'; expected the end of the line");
    CHECK(error("[1,2]\n[3,\n4]") == "f.ndjson:2:4: the text ends inside an array; expected ']'");
    CHECK(error("[1,2]\n{}") ==
          "f.ndjson:2:1: found '{'; expected a list on each line, "
          "or attn batch for requests");
    CHECK(error("[[[1]]]\n[[[2]]]") ==
          "f.ndjson:1:3: an array nested deeper than 2; expected rank 1 to 2");
    CHECK(error("[1]\n[2]", rules_of(1, 1)) ==
          "f.ndjson:1:1: one of several lines; expected one list, of rank 1");
    CHECK(error("[1]\n[true]", rules_of(1, 2, true)) ==
          "f.ndjson:2:1: true and false; expected numbers as on the first line");
}

TEST_CASE("ndjson: lines with something else in them are taken right or not at all") {
    std::mt19937 random(5);
    std::size_t taken = 0;
    const ArrayRules rules = rules_of(1, 4, true);
    for (int i = 0; i < 20000; ++i) {
        std::string text;
        for (std::size_t lines = 1 + random() % 4, line = 0; line < lines; ++line)
            text += json_text({2, 2}, random, false) + (line + 1 < lines ? "\n" : "");
        text = mutated(text, random);
        const Source source{"f", text};
        if (text.find('\n') == std::string::npos) continue;
        // The fast reader does not take blank lines.
        const std::string careful =
            text.substr(0, text.find('\n')) + "\n" + text.substr(text.find('\n'));
        if (agree(
                text,
                [&] {
                    return read_json_rows(text, rules, Outermost::lines, nullptr,
                                          1 + random() % 20);
                },
                [&] {
                    return read_ndjson_array(Source{"f", careful}, rules);
                }))
            ++taken;
    }
    CHECK(taken > 500);
}

TEST_CASE("ndjson: recognised if the first line holds a whole value and more lines follow") {
    for (const char* text : {"[1]\n[2]", "{\"a\":\"]\\\"\"}\n\n {}", "\n[[1],[2]] \r\n[[3],[4]]\n",
                             "[1]\n[", "{}\n[x"})
        CHECK(looks_like_ndjson(text));
    for (const char* text : {"[1]", "[1]\n", "[[1],\n[2]]", "[\n[1]]", "{\"a\":\n[1]}", "1,2\n3,4",
                             "[1] 2\n[3]", "[1]\nx", "\"a\"\n[1]", "[1],\n[2]", "", "[\"]\n[1]"})
        CHECK_FALSE(looks_like_ndjson(text));
}

}  // namespace regular_text_test
