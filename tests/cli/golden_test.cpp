// Every case of real PyTorch, through the real binary. What the notebooks print: manual_test.cpp.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace golden_test {

using namespace attn::test;
using nlohmann::json;

namespace {

json answer(const std::string& mode, const json& request) {
    const Outcome outcome = run_attn({mode, "-"}, request.dump());
    // A batch for nn.MultiheadAttention has a note on the order of its axes.
    CHECK((outcome.err == "" || contains(outcome.err, "without batch_first")));
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
}

void check_close(const json& got, const json& expected, double atol, double rtol) {
    REQUIRE(shape_of(got) == shape_of(expected));
    const std::vector<double> a = flat(got), b = flat(expected);
    for (std::size_t i = 0; i < a.size(); ++i) {
        CAPTURE(i);
        if (std::isinf(b[i]))
            CHECK(a[i] == b[i]);
        else
            CHECK(std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i]));
    }
}

}  // namespace

TEST_CASE("golden: every case of real PyTorch, parameters to the last bit") {
    const json golden = load_data("golden/torch.json");
    const double atol = golden["tolerance"]["atol"], rtol = golden["tolerance"]["rtol"];
    int cases = 0;
    for (const json& one : golden["cases"]) {
        const json& request = one["request"];
        CAPTURE(request["id"].get<std::string>());
        const json result = answer(request["mode"], request);
        CHECK(result["id"] == request["id"]);
        for (const auto& item : one["expected"].items()) {
            const std::string& name = item.key();
            const json& expected = item.value();
            CAPTURE(name);
            if (name.starts_with("W_") || name.starts_with("b_")) {
                REQUIRE(shape_of(result[name]) == shape_of(expected));
                const std::vector<double> a = flat(result[name]), b = flat(expected);
                for (std::size_t i = 0; i < a.size(); ++i)
                    CHECK(static_cast<float>(a[i]) == static_cast<float>(b[i]));
            } else {
                check_close(result[name], expected, atol, rtol);
            }
        }
        ++cases;
    }
    CHECK(cases == 60);
}

}  // namespace golden_test
