// Tables for people.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "io/write/report.hpp"
#include "tests/support/support.hpp"

using namespace attn;
using namespace attn::io;

namespace {

std::string table(const Report& report, const NumberStyle& style = {}) {
    return test::written([&](Output& out) { write_table(out, report, style); });
}

}  // namespace

TEST_CASE("table: token labels on both axes of the weights") {
    Report report;
    report.tokens = {"Your", "\u9053"};
    report.arrays = {{"attention_weights",
                      test::array_of<float>({{1, 0}, {0.25f, 0.75f}}),
                      {"q_len", "kv_len"}}};
    CHECK(table(report) ==
          "attention_weights (q_len 2, kv_len 2)\n"
          "        Your      \u9053\n"
          "Your  1.0000  0.0000\n"
          "\u9053    0.2500  0.7500\n");
}

TEST_CASE("table: a single query row keeps its own label; columns of vectors are counted") {
    Report report;
    report.tokens = {"Your", "journey"};
    report.first_query = 1;
    report.arrays = {{"context_vectors", test::array_of<float>({{1, -2}}), {"q_len", "d_out"}}};
    NumberStyle style;
    style.decimals = 1;
    CHECK(table(report, style) ==
          "context_vectors (q_len 1, d_out 2)\n"
          "           0     1\n"
          "journey  1.0  -2.0\n");
}

TEST_CASE("table: heads and batch entries are titled, vectors are one row") {
    Report report;
    Array<float> weights = Array<float>::from_shape({2, 2, 1, 1});
    std::copy_n(std::array{1.0f, 2.0f, 3.0f, 4.0f}.begin(), 4, weights.begin());
    Array<double> vector = Array<double>::from_shape({1});
    vector(0) = 0.5;
    report.arrays.push_back({"w", weights, {"batch", "heads", "q_len", "kv_len"}});
    report.arrays.push_back({"b_key", vector, {"d_out"}});
    const std::string text = table(report);
    CHECK(text.find("batch 0, head 1\n        0\n0  2.0000\n") != std::string::npos);
    CHECK(text.find("batch 1, head 0\n        0\n0  3.0000\n") != std::string::npos);
    CHECK(text.find("b_key (d_out 1)\n       0\n  0.5000\n") != std::string::npos);
}

TEST_CASE("table: a label cannot break the lines") {
    Report report;
    report.tokens = {"a\nb"};
    Array<float> one = Array<float>::from_shape({1, 1});
    one(0, 0) = 1;
    report.arrays.push_back({"w", one, {"q_len", "kv_len"}});
    CHECK(table(report) == "w (q_len 1, kv_len 1)\n        a?b\na?b  1.0000\n");
}
