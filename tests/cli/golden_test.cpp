// Every array that the notebooks print and every case of real PyTorch, through the real binary.
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

/// The case's own words for its inputs, as a request.
json request_of(const json& golden, const json& inputs) {
    json request = golden["config"];
    if (request.contains("q"))
        return {{"query", request["q"]},
                {"key", request["k"]},
                {"value", request["v"]},
                {"scale", request["scale"]}};
    const std::string input = request.value("input", "journey");
    request.erase("input");
    if (request.contains("text")) return request;
    if (input == "journey twice")
        request["inputs"] = {inputs["journey"], inputs["journey"]};
    else
        request["inputs"] = inputs[input];
    return request;
}

struct Expected {
    std::string name;
    json values;
    double tolerance;
    bool first_ten_rows;
};

std::vector<Expected> expected_of(const json& golden) {
    std::vector<Expected> all;
    const std::string cut = "_batch0_first10";
    for (const auto& [key, values] : golden["expected"].items()) {
        const bool is_cut = key.ends_with(cut);
        all.push_back({is_cut ? key.substr(0, key.size() - cut.size()) : key, values,
                       golden["tolerance"][key].get<double>(), is_cut});
    }
    return all;
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

TEST_CASE("golden: all 43 arrays that the notebooks print") {
    const json golden = load_data("golden/seeds.json");
    int arrays = 0;
    for (const json& one : golden["cases"]) {
        CAPTURE(one["id"].get<std::string>());
        json request = request_of(one, golden["inputs"]);
        const std::string mode = one["config"].contains("q") ? "sdpa" : one["config"]["mode"];
        const std::vector<Expected> expected = expected_of(one);
        request["emit"] = json::array();
        for (const Expected& e : expected) request["emit"].push_back(e.name);
        const json result = answer(mode, request);
        for (const Expected& e : expected) {
            CAPTURE(e.name);
            json got = result[e.name];
            if (e.first_ten_rows) {
                got = got[0];
                got.erase(got.begin() + 10, got.end());
            }
            check_close(got, e.values, e.tolerance, 0);
            ++arrays;
        }
    }
    CHECK(arrays == 43);
}

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
