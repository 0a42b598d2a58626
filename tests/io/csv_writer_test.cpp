// Results as CSV, and rows of text in pieces.
#include <doctest/doctest.h>

#include <limits>
#include <memory>

#include <nlohmann/json.hpp>

#include "io/read/csv.hpp"
#include "io/write/report.hpp"
#include "io/write/row_text.hpp"
#include "tests/support/row_stream.hpp"
#include "tests/support/support.hpp"

using namespace attn;
using namespace attn::io;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

Report report_of(AnyArray values) {
    Report report;
    report.arrays = {{"scores", std::move(values), {"q_len", "kv_len"}}};
    return report;
}

std::string text_of(const Report& report, const NumberStyle& style = {}) {
    return test::written([&](Output& out) { write_csv(out, report, style); });
}

Array<float> counting(const std::vector<std::size_t>& shape) {
    Array<float> array = Array<float>::from_shape(shape);
    for (std::size_t i = 0; i < array.size(); ++i)
        array.data()[i] = 0.1f * static_cast<float>(i) - 1;
    return array;
}

/// The array in steps of `rows` rows.
NamedArray stream_of(const Array<float>& array, std::size_t rows) {
    NamedArray named{"scores", {}, {"q_len", "kv_len"}};
    named.stream = attn::test::row_stream(array, rows);
    return named;
}

}  // namespace

TEST_CASE("csv writer: a matrix is its rows, other ranks say their shape first") {
    CHECK(text_of(report_of(test::array_of<float>({{0.43f, -0.0f}, {1e-45f, 3.4028235e38f}}))) ==
          "0.43,-0\n1e-45,3.4028235e+38\n");
    CHECK(text_of(report_of(test::array_of<float>({1, 2, 3}))) == "# shape: 3\n1,2,3\n");
    CHECK(text_of(report_of(test::array_of({{{1, 2}, {3, 4}}, {{5, 6}, {7, 0.1}}}))) ==
          "# shape: 2,2,2\n1,2\n3,4\n5,6\n7,0.1\n");
    CHECK(text_of(report_of(test::array_of<std::int64_t>({{4, -1}}))) == "4,-1\n");
}

TEST_CASE("csv writer: decimals and non-finite numbers") {
    NumberStyle style;
    style.decimals = 2;
    CHECK(text_of(report_of(test::array_of({{0.125, 3}})), style) == "0.12,3.00\n");
    CHECK(text_of(report_of(test::array_of<float>(
              {{-inf, inf, std::numeric_limits<float>::quiet_NaN()}}))) == "-inf,inf,nan\n");
}

TEST_CASE("csv writer: what is written is read back") {
    ArrayRules rules;
    rules.lowest_rank = 1;
    rules.highest_rank = 4;
    for (const std::vector<std::size_t>& shape :
         {std::vector<std::size_t>{5}, {1}, {4, 3}, {2, 3, 4}, {1, 2, 1, 3}}) {
        const Array<float> array = counting(shape);
        const std::string text = text_of(report_of(array));
        const NumberArray read =
            read_csv(test::make_source("f.csv", text), rules, {Guess::no, Guess::no}).matrix;
        CHECK(read.shape() == shape);
        for (std::size_t i = 0; i < array.size(); ++i)
            CHECK(static_cast<float>(read.values.data()[i]) == array.data()[i]);
    }
}

TEST_CASE("rows: the bytes depend neither on threads, nor on pieces, nor on a stream's steps") {
    for (const std::vector<std::size_t>& shape :
         {std::vector<std::size_t>{1, 1}, {130}, {7, 65}, {3, 5, 64}, {40, 1}, {2, 2, 3, 2}}) {
        const Array<float> array = counting(shape);
        for (const Writer write : {write_json, write_csv}) {
            Report report = report_of(array);
            const auto text = [&] {
                return test::written([&](Output& out) { write(out, report, {}); });
            };
            const std::string expected = text();
            for (std::size_t threads : {1u, 2u, 3u, 4u, 5u}) {
                ThreadPool workers(threads);
                report.workers = &workers;
                CHECK(text() == expected);
                for (std::size_t step : {1u, 3u, 1000u}) {
                    const NamedArray whole =
                        std::exchange(report.arrays[0], stream_of(array, step));
                    CHECK(text() == expected);
                    report.arrays[0] = whole;
                }
                // No brackets here: pieces alone.
                const auto none = [](RowText&, const auto&, std::size_t) {};
                const RowFormat plain{" ", "nan", "inf", "-inf", {}, none, none};
                std::string first;
                for (std::size_t piece : {1u, 2u, 64u, 100u, 10000u}) {
                    const std::string pieces = test::written([&](Output& out) {
                        write_rows(out, report.arrays[0], plain, &workers, piece);
                    });
                    if (first.empty()) first = pieces;
                    CHECK(pieces == first);
                }
            }
        }
    }
}
