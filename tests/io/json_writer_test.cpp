// Results as JSON.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <limits>

#include "io/write/report.hpp"
#include "tests/support/support.hpp"

using namespace attn;
using namespace attn::io;

namespace {

Report report_of(AnyArray values) {
    Report report;
    report.head = {{"schema", R"("attn.result/1")"}, {"mode", R"("self")"}};
    report.arrays = {{"scores", std::move(values), {"q_len", "kv_len"}}};
    return report;
}

std::string text_of(const Report& report, const NumberStyle& style = {}) {
    return test::written([&](Output& out) { write_json(out, report, style); });
}

const Array<float> sample = test::array_of<float>({{0.43f, -0.0f}, {1e-45f, 3.4028235e38f}});
constexpr float inf = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("json: one line, float32 as the shortest decimals") {
    CHECK(text_of(report_of(sample)) ==
          "{\"schema\":\"attn.result/"
          "1\",\"mode\":\"self\",\"scores\":[[0.43,-0.0],[1e-45,3.4028235e+38]]}\n");
}

TEST_CASE("json: pretty has one row a line") {
    NumberStyle style;
    style.pretty = true;
    CHECK(text_of(report_of(sample), style) ==
          "{\n  \"schema\": \"attn.result/1\",\n  \"mode\": \"self\",\n  \"scores\": [\n"
          "    [0.43, -0.0],\n    [1e-45, 3.4028235e+38]\n  ]\n}\n");
}

TEST_CASE("json: precision, integers, a vector") {
    NumberStyle style;
    style.decimals = 2;
    CHECK(text_of(report_of(test::array_of({{0.125, 3}})), style).find("[[0.12,3.00]]") !=
          std::string::npos);
    CHECK(text_of(report_of(test::array_of<std::int64_t>({4, -1})), style).find("[4,-1]") !=
          std::string::npos);
}

TEST_CASE("json: infinities and NaN as strings, nulls or literals") {
    const Report report =
        report_of(test::array_of<float>({{-inf, inf, std::numeric_limits<float>::quiet_NaN()}}));
    NumberStyle style;
    CHECK(text_of(report, style).find("[[\"-Infinity\",\"Infinity\",\"NaN\"]]") !=
          std::string::npos);
    style.nonfinite = Nonfinite::null;
    CHECK(text_of(report, style).find("[[null,null,null]]") != std::string::npos);
    style.nonfinite = Nonfinite::literal;
    CHECK(text_of(report, style).find("[[-Infinity,Infinity,NaN]]") != std::string::npos);
}

TEST_CASE("json: a batch nests, and is read back as it was") {
    Array<float> batch = Array<float>::from_shape({2, 3, 2});
    for (std::size_t i = 0; i < 12; ++i) batch.data()[i] = 0.1f * static_cast<float>(i);
    for (bool pretty : {false, true}) {
        NumberStyle style;
        style.pretty = pretty;
        const auto read = nlohmann::json::parse(text_of(report_of(batch), style));
        CHECK(test::shape_of(read["scores"]) == std::vector<std::size_t>{2, 3, 2});
        const std::vector<double> values = test::flat(read["scores"]);
        for (std::size_t i = 0; i < 12; ++i)
            CHECK(static_cast<float>(values[i]) == batch.data()[i]);
    }
}
