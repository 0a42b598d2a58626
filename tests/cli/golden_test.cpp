// Every case of real PyTorch, through the real binary, and inputs that are drawn: --rand and
// --randn are PyTorch's numbers, and so are the parameters that are drawn after them. What the
// notebooks print: manual_test.cpp.
#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"

namespace golden_test {
namespace {

using namespace attn::test;
using nlohmann::json;

json torch_answer(const std::string& mode, const json& request) {
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

TEST_CASE("golden: every case of real PyTorch, parameters to the last bit") {
    const json golden = load_data("golden/torch.json");
    const double atol = golden["tolerance"]["atol"], rtol = golden["tolerance"]["rtol"];
    int cases = 0;
    for (const json& one : golden["cases"]) {
        const json& request = one["request"];
        CAPTURE(request["id"].get<std::string>());
        const json result = torch_answer(request["mode"], request);
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

/// The low 32 bits of the hash of the numbers in their type, in hexadecimal.
std::string hash_of(const json& values, const std::string& dtype) {
    const std::uint64_t hash = dtype == "float32"
                                   ? hash_of_bytes(attn::Array<float>(array_of(values)))
                                   : hash_of_bytes(array_of(values));
    char text[9];
    std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(hash & 0xffffffff));
    return text;
}

TEST_CASE("drawn input: torch.rand, torch.randn and the weights after them, of every size") {
    const json golden = load_data("golden/torch_input.json");
    std::size_t count = 0;
    for (const json& one : golden["cases"]) {
        CAPTURE(one.dump());
        const std::string dtype = one["dtype"], init = one["init"], draw = one["draw"];
        Words words =
            words_in((init != "mha" ? "self --d-out 2 --" : "multihead --causal --") + draw + " " +
                     list_of(one["shape"]) + " --dtype " + dtype + " --seed " + one["seed"].dump() +
                     " --init " + init + " --emit inputs,W_query");
        // One number of torch.rand in float32 is one draw.
        if (one["skip"] != 0) words = words + Words{"--rng-skip", one["skip"].dump()};
        const json result = answer(words);
        CHECK(shape_of(result["inputs"]) == one["shape"].get<std::vector<std::size_t>>());
        const std::vector<double> drawn = flat(result["inputs"]);
        if (draw == "rand") {
            CHECK(hash_of(result["inputs"], dtype) == one["hash"]);
        } else {
            const auto ends = one["ends"].get<std::vector<double>>();
            const std::size_t shown = ends.size() / 2, more = drawn.size() - shown;
            const double most = dtype == "float32" ? 2e-6 : 1e-15;
            for (std::size_t i = 0; i < shown; ++i) {
                CHECK(std::abs(drawn[i] - ends[i]) <= most * std::max(1.0, std::abs(ends[i])));
                CHECK(std::abs(drawn[more + i] - ends[shown + i]) <=
                      most * std::max(1.0, std::abs(ends[shown + i])));
            }
        }
        CHECK(hash_of(result["W_query"], dtype) == one["weight"]);
        ++count;
    }
    CHECK(count == 172);
}

TEST_CASE(
    "draws: initialisers, orders, operands and NumPy's, and rng_consumed goes on after them") {
    write_text("four.json", "[[1,2,3,4],[5,6,7,8],[0,1,0,1]]");
    write_text("three.json", "[[1,2,3],[5,6,7]]");
    const json golden = load_data("golden/draws.json");
    for (const json& one : golden["cases"]) {
        CAPTURE(one.dump());
        const std::string dtype = one["dtype"];
        const Words words = one["words"].get<Words>();
        std::string names;
        for (const auto& item : one["hashes"].items())
            names += (names.empty() ? "" : ",") + item.key();
        const json result = answer(words + Words{"--emit", names});
        for (const auto& item : one["hashes"].items()) {
            CAPTURE(item.key());
            CHECK(hash_of(result[item.key()], dtype) == item.value());
        }
        const bool is_numpy = std::ranges::find(words, "numpy") != words.end();
        const json next =
            answer({"self", "--rand", "4,1", "--init", "none", "--emit", "inputs", "--dtype",
                    "float32", "--rng", is_numpy ? "numpy" : "torch", "--seed",
                    result["config"]["seed"].dump(), "--rng-skip", result["rng_consumed"].dump()});
        CHECK(hash_of(next["inputs"], "float32") == one["next"]);
    }
    CHECK(golden["cases"].size() == 91);
}

}  // namespace
}  // namespace golden_test
