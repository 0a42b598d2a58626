// CSV: headers, labels, comments, quotes, line ends, separators, errors with their place.
#include "io/read/csv.hpp"

#include <doctest/doctest.h>

#include "tests/support/support.hpp"

namespace csv_test {

using namespace attn;
using namespace attn::io;
using attn::test::error_of;
using attn::test::numbers_of;

namespace {

LabelledMatrix read(const std::string& text) {
    return read_csv(test::make_source("f.csv", text), {});
}

std::string error(const std::string& text) {
    return error_of([&] { read(text); });
}

const std::vector<double> one_to_four{1, 2, 3, 4};

}  // namespace

TEST_CASE("csv: rows of empty fields are refused") {
    const std::string gap = "a row of empty fields; expected numbers, or no such line";
    CHECK(error(",\n1,2\n3,4\n") == "f.csv:1: " + gap);
    CHECK(error("1,2\n3,4\n,\n") == "f.csv:3: " + gap);
    CHECK(error("1,2,\n3,4,\n,,\n") == "f.csv:3: " + gap);
    CHECK(error("1,2\n,\n3,4\n") == "f.csv:2: " + gap);
    CHECK(error("1\t2\n\t\n3\t4\n") == "f.csv:2: " + gap);
    CHECK(error("a,b\n,\n3,4\n") == "f.csv:2: " + gap);
    CHECK(numbers_of(read("1,2\n\n \n3,4\n").matrix.values) == one_to_four);
}

TEST_CASE("csv: the error of a ragged row names the line that set the width") {
    CHECK(error("1,2,3\n4,5,6\n7,8\n") == "f.csv:3: 2 values; expected 3 as in line 1");
    CHECK(
        error("a,b,c\n1,2,3,4\n") ==
        "f.csv:2: 4 fields; expected 3 as in the header, line 1; --csv-labels yes reads the first "
        "as a label");
    CHECK(error("Your,1,2\njourney,3\n") == "f.csv:2: 1 value; expected 2 as in line 1");
    CHECK(error("# c\n\n1,2\n3\n") == "f.csv:4: 1 value; expected 2 as in line 3");
}

TEST_CASE("csv: text where a number should be") {
    CHECK(error("1,2\n3,abc\n") == "f.csv:2:3: found 'abc'; expected a number");
    CHECK(error("1,2\nabc,4\n") ==
          "f.csv:2:1: found 'abc' in a column that holds '1' on line 1; expected numbers, or all "
          "labels in quotes; --csv-labels yes reads the column as labels");
    CHECK(error("0.5,abc,0.7\n") == "f.csv:1:5: found 'abc'; expected a number");
    CHECK(error("1,2\n3,\n") == "f.csv:2:3: an empty field; expected a number");
    CHECK(error("1,2\n3,4x\n") == "f.csv:2:3: found '4x'; expected a number");
    CHECK(error("a,b\n") ==
          "f.csv:1:1: found 'a' and no number on this line; expected a row of numbers");
    CHECK(error("2,a\n1,3\n") ==
          "f.csv:1:3: found 'a', which may be a damaged number or the name of a column; expected "
          "numbers, or a header of words; --csv-header yes reads the line as a header");
    CHECK(
        error("1.5abc,2\n1,3\n") ==
        "f.csv:1:1: found '1.5abc' in a column that holds '1' on line 2; expected numbers, or all "
        "labels in quotes; --csv-labels yes reads the column as labels");
    CHECK(error("the;0,43;1\n") ==
          "f.csv:1:5: found '0,43', which may be a number with a decimal comma or the name of a "
          "column; expected a number with a decimal point; --csv-decimal , reads it as a number");
    CHECK(error("1;2\n0,43;1\n")
              .starts_with("f.csv:2:1: found '0,43', with a decimal comma, in a column"));
    CHECK(
        error("1;2\n1;0,43\n") ==
        "f.csv:2:3: found '0,43'; expected a number with a decimal point; --csv-decimal , reads it "
        "as a number");
    CHECK(error("# only\n") == "f.csv: has no row of numbers; expected at least one");
    CHECK(error("\"a,1\n2,3\n") ==
          "f.csv:1:1: a quote that does not end on its line; expected a closing '\"'; "
          "--csv-quotes no reads it as text");
    CHECK(error("\"a\"b,1\n") ==
          "f.csv:1:4: found 'b' after a quoted field; expected ',' or the end of the line");
}

TEST_CASE("csv: integers with a comma that a decimal comma explains better are refused") {
    const auto decimals = [](const std::string& text, DecimalMark mark) {
        return numbers_of(
            read_csv(test::make_source("f.csv", text), {}, {.decimal = mark}).matrix.values);
    };
    for (const char* text : {"0,05\n0,007\n", "0,5\n-0,3\n", "the 1,5\nof 2,3\n"}) {
        CAPTURE(text);
        CHECK(error(text).find("--csv-decimal , reads it as one, --csv-decimal . as two") !=
              std::string::npos);
        CHECK(decimals(text, DecimalMark::comma).size() == 2);
        CHECK(decimals(text, DecimalMark::point).size() == (text[0] == 't' ? 2 : 4));
    }
    for (const char* text : {"0,5\n1,25\n", "-1,5\n2,-3\n", "-128,5\n2,3\n", "-1, 5\n2, 3\n",
                             "x,y\n0,05\n0,007\n", "-1,5\n2,0.5\n", "# c\n1,0\n0,1\n"})
        CHECK(read(text).matrix.shape() == std::vector<std::size_t>{2, 2});
    // With a group of three digits, what a comma means is open.
    CHECK(error("\"1,000\",2\n3,4\n").find("--csv-decimal") == std::string::npos);
    CHECK(error("1,000\t2\n3\t4\n").find("--csv-decimal") == std::string::npos);
    CHECK(error("\"1,000\",2\n\"0,5\",4\n").find("--csv-decimal") != std::string::npos);
}

TEST_CASE("csv: a flag is named only if the reading by it gets past the error") {
    for (const char* text : {"1,2,\n3,4\n", "1|2\n3|4\n", "(1,2)\n(3,4)\n", "'1','2'\n'3','4'\n"}) {
        CAPTURE(text);
        CHECK(error(text).find("; expected numbers, or a header of words") != std::string::npos);
        CHECK(error(text).find("--csv") == std::string::npos);
    }
    for (const std::string bad : {"1_0", "0x10", "50%", "$3", "NA", "1.0-101"})
        for (const std::string& text : {bad + ",2\n3,4\n", "3,2\n" + bad + ",4\n"}) {
            CAPTURE(text);
            CHECK(error(text).ends_with("; --csv-labels yes reads the column as labels"));
        }
    CHECK(error("v 1,5 2,5\nw 3,5 4,5\n").find("; --csv-decimal , reads") != std::string::npos);
    // In a file of any length, by the lines around the error.
    std::string glove;
    for (int i = 0; i < 60000; ++i) glove += std::to_string(i) + " 0.5\nthe 0.25\n";
    CHECK(error(glove + "\" 1\n" + glove).ends_with("; --csv-quotes no reads it as text"));
    CHECK(error(glove + "\" 1\n" + glove).starts_with("f.csv:120001:1: a quote"));
}

TEST_CASE("csv: numbers that do not fit") {
    CHECK(error("1,nan\n") == "f.csv:1:3: nan is not finite; expected a finite number");
    CHECK(error("1,-inf\n") == "f.csv:1:3: -inf is not finite; expected a finite number");
    CHECK(error("1,3.5e38\n") ==
          "f.csv:1:3: 3.5e38 overflows float32; expected at most 3.4028235e38, or dtype float64");
    CHECK(error("1,1e999999999\n") ==
          "f.csv:1:3: 1e999999999 overflows float64; expected at most 1.7976931348623157e308");
    const auto as_float64 = read_csv(test::make_source("f", "3.5e38,1e-400\n"), {Dtype::float64});
    CHECK(numbers_of(as_float64.matrix.values) == std::vector<double>{3.5e38, 0});
}

}  // namespace csv_test
