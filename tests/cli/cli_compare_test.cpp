// attn compare, through the real binary.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace cli_compare_test {

using namespace attn::test;
using nlohmann::json;

namespace {

json compared(const Words& arguments, int code) {
    return answer(Words{"compare"} + arguments + Words{"--format", "json"}, "", code);
}

void make_results() {
    scratch_folder();
    run_attn({"causal", "--example", "journey", "--seed", "1", "-o", "one.json"});
    run_attn({"causal", "--example", "journey", "--seed", "2", "-o", "two.json"});
    run_attn(
        {"causal", "--example", "journey", "--seed", "1", "--precision", "4", "-o", "four.json"});
}

}  // namespace

TEST_CASE("compare: a result equals itself and differs from another seed's") {
    make_results();
    const json same = compared({"one.json", "one.json"}, 0);
    CHECK(same["equal"] == true);
    CHECK(same["arrays"].size() == 2);
    CHECK(same["arrays"][0]["max_ulp"] == 0);
    const json other = compared({"one.json", "two.json"}, 1);
    CHECK(other["equal"] == false);
    CHECK(other["arrays"][0]["outside"] > 0);
}

TEST_CASE("compare: tolerances excuse a rounded print") {
    make_results();
    const json rounded = compared({"four.json", "one.json"}, 1);
    CHECK(rounded["arrays"][0]["max_abs"] < 5.1e-5);
    compared({"four.json", "one.json", "--atol", "5e-5"}, 0);
    compared({"four.json", "one.json", "--rtol", "1"}, 0);
    compared({"four.json", "one.json", "--ulp", "4000000000"}, 0);
    compared({"four.json", "one.json", "--atol", "1e-9"}, 1);
}

TEST_CASE("compare: arrays from JSON and CSV, NaN, shapes, missing arrays, standard input") {
    make_results();
    write_text("a.json", "[[1, 2], [3, NaN]]");
    write_text("a.csv", "1,2\n3,nan\n");
    write_text("b.json", "[1, 2, 3]");
    compared({"a.json", "a.csv"}, 1);
    compared({"a.json", "a.csv", "--equal-nan"}, 0);
    const json shapes = compared({"a.json", "b.json"}, 1);
    CHECK(shapes["arrays"][0]["shape_a"] == json({2, 2}));
    CHECK(shapes["arrays"][0]["shape_b"] == json({3}));
    run_attn({"causal", "--example", "journey", "--seed", "1", "--emit", "context_vectors,scores",
              "-o", "more.json"});
    const json missing = compared({"one.json", "more.json"}, 1);
    CHECK(missing["arrays"].size() == 3);
    CHECK(missing["arrays"][2]["name"] == "scores");
    CHECK(missing["arrays"][2]["shape_a"] == nullptr);
    CHECK(run_shell("attn causal --example journey --seed 1 | attn compare - one.json").code == 0);
}

TEST_CASE("compare: --common compares what both have, and still finds what differs") {
    scratch_folder();
    const Words names{"queries", "scores", "attention_weights", "context_vectors"};
    const auto write = [&](unsigned set, const std::string& seed, const std::string& file) {
        std::string emit;
        for (std::size_t i = 0; i < names.size(); ++i)
            if ((set >> i & 1U) != 0) emit += (emit.empty() ? "" : ",") + names[i];
        run_attn({"causal", "--example", "journey", "--seed", seed, "--emit", emit, "-o", file});
    };
    for (unsigned a = 1; a < 16; ++a)
        for (unsigned b = 1; b < 16; ++b) {
            CAPTURE(a);
            CAPTURE(b);
            write(a, "1", "a.json");
            write(b, "1", "b.npz");
            if ((a & b) == 0) {
                check_error({"compare", "a.json", "b.npz", "--common"}, "", 2,
                            "expected one in common");
                continue;
            }
            const json same = compared({"a.json", "b.npz", "--common"}, 0);
            CHECK(same["arrays"].size() == static_cast<std::size_t>(std::popcount(a & b)));
            compared({"a.json", "b.npz"}, a == b ? 0 : 1);
            write(b, "2", "b.npz");
            compared({"a.json", "b.npz", "--common"}, 1);
        }
}

TEST_CASE("compare: numbers that are equal only in the narrower type differ") {
    scratch_folder();
    write_text("a.json", "[1e300, 1, 1e-46]");
    write_text("b.json", "[1e305, 1.000000000001, 0]");
    CHECK(compared({"a.json", "b.json"}, 1)["arrays"][0]["outside"] == 3);
    CHECK(compared({"a.json", "b.json", "--ulp", "1"}, 1)["arrays"][0]["outside"] == 1);
    write_text("c.json", R"({"a": [1], "config": {"dtype": 5}})");
    write_text("d.json", "[1]");
    compared({"c.json", "d.json"}, 0);
}

TEST_CASE("compare: a table for people") {
    scratch_folder();
    write_text("x.json", "[[1, 2], [3, 4]]");
    write_text("y.json", "[[1, 2], [3, 4.5]]");
    const Outcome narrow = run_shell("COLUMNS=80 attn compare x.json y.json");
    CHECK(narrow.code == 1);
    CHECK(narrow.out ==
          "array   shape  verdict\n"
          "  max abs  mean abs  max rel  float32 ulp  worst at  nonfinite  outside\n"
          "array  (2, 2)  differs\n"
          "      0.5     0.125    0.111      1048576    [1, 1]          0        1\n");
    CHECK(run_shell("COLUMNS=200 attn compare x.json y.json").out ==
          "array   shape  max abs  mean abs  max rel  float32 ulp  worst at  nonfinite  outside  "
          "verdict\n"
          "array  (2, 2)      0.5     0.125    0.111      1048576    [1, 1]          0        1  "
          "differs\n");
}

TEST_CASE("compare: a narrow table has the contents of the wide one, and fits 80 columns") {
    scratch_folder();
    const Words sides{"a.npz", "b.json", "c.npz", "d.json"};
    run_attn({"multihead", "--example", "pair", "--heads", "2", "--d-out", "4", "-o", sides[0]});
    run_attn({"multihead", "--example", "pair", "--heads", "2", "--d-out", "4", "--seed", "3", "-o",
              sides[1], "--emit", "all"});
    run_attn({"self", "--example", "journey", "--dtype", "float64", "-o", sides[2]});
    write_text(sides[3], R"({"context_vectors": [[1, NaN]], "a\n\u001b[31mb": [[1e-300, 1e300]]})");
    const auto words_of = [](const std::string& text) {
        Words words;
        std::istringstream in(text);
        for (std::string word; in >> word;) words.push_back(word);
        std::sort(words.begin(), words.end());
        return words;
    };
    for (const std::string& a : sides)
        for (const std::string& b : sides) {
            const auto table = [&](int columns) {
                return run_shell("COLUMNS=" + std::to_string(columns) + " attn compare " + a + " " +
                                 b)
                    .out;
            };
            const std::string wide = table(1000);
            for (int columns : {1, 20, 60, 80, 100, 130}) {
                const std::string text = table(columns);
                CHECK(words_of(text) == words_of(wide));
                for (const std::string& line : lines_of(text))
                    if (columns >= 80) CHECK(line.size() <= static_cast<std::size_t>(columns));
                CHECK(text.find('\x1b') == std::string::npos);
            }
        }
}

}  // namespace cli_compare_test
