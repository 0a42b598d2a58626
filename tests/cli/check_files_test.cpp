// attn check: results of no request, and how many digits numbers were printed with. The files that
// it reads: same_answers.txt.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/check/check.hpp"
#include "tests/support/answers.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace check_files_test {

using namespace attn::test;
using nlohmann::json;

namespace {

constexpr const char* three_requests = R"({"id": "a", "mode": "self", "inputs": [[1, 2], [0.5, 3]]}
{"id": 7, "mode": "causal", "inputs": [[1, 2], [0.5, 3]]}
{"id": "c", "mode": "self", "inputs": [[1, 2]], "dtype": "float64"}
)";

}  // namespace

TEST_CASE("check: results of no request are listed, each with its id or line") {
    scratch_folder();
    write_text("all.ndjson", three_requests);
    const std::string results = run_attn({"batch", "all.ndjson"}).out;
    write_text("results.ndjson", results);
    const Words lines = lines_of(three_requests);
    const json ids[] = {"a", 7, "c"};
    for (unsigned asked = 1; asked < 8; ++asked) {
        CAPTURE(asked);
        std::string requests;
        json expected = json::array(), left = json::array();
        for (std::size_t i = 0; i < 3; ++i) {
            const bool is_asked = (asked >> i & 1U) != 0;
            if (is_asked) requests += lines[i] + "\n";
            (is_asked ? expected : left).push_back(ids[i]);
        }
        write_text("requests.ndjson", requests);
        const Outcome outcome =
            run_attn({"check", "requests.ndjson", "--against", "results.ndjson"});
        CHECK(outcome.code == (left.empty() ? 0 : 1));
        json found = json::array(), refused = json::array();
        for (const json& line : answers_in(outcome.out))
            (line.contains("error") ? refused : found).push_back(line["id"]);
        CHECK(found == expected);
        CHECK(refused == left);
    }
    // without ids: by place
    write_text("requests.ndjson", R"({"mode": "self", "inputs": [[1, 2], [0.5, 3]]})"
                                  "\n");
    write_text("results.ndjson", run_shell("attn batch requests.ndjson | sed 'p;p'").out);
    const Outcome outcome = run_shell(
        "sed 's/\"id\":[^,]*,//' results.ndjson >r.ndjson; attn check requests.ndjson "
        "--against r.ndjson");
    const std::vector<json> reports = answers_in(outcome.out);
    REQUIRE(reports.size() == 3);
    CHECK(reports[0]["verdict"] == "right within its type");
    CHECK(reports[1]["error"]["where"] == "r.ndjson:2");
    CHECK(reports[2]["error"]["where"] == "r.ndjson:3");
}

TEST_CASE("check: how many digits numbers were printed with") {
    const int all = attn::PrintedDigits::all, exact = -1;
    struct Case {
        const char* text;
        int decimals, significant;
    };
    for (const Case& each : {
             Case{"[[1.4 , 1.57], [1.4 , 1.57]]", 2, 3},           // NumPy, precision 2
             {"[[1.4, 1.5708], [123. , 1.57]]", 4, all},           // precision 4
             {"[[9.9865e-01, 1.0561e-03]]", 7, 5},                 // PyTorch, sci_mode
             {"[[-5.5268e+02], [1.0000e+00]]", 4, 5},              // the same
             {"1.57,123.46\n0.3,12.05\n", 2, all},                 // round(x, 2)
             {"0.00157,1.57\n12.3,123\n", 5, 3},                   // %.3g
             {"0.002,0.157\n12.300,123.000\n", 3, all},            // %.3f
             {"1.23e+02,4.57e-01\n", 3, 3},                        // %.2e
             {"[[0.00000209 0.] [0.9986526 0.0010561]]", 8, all},  // NumPy, suppress
             {"[[0.5, 0.25], [1, 0.75]]", exact, 0},
             {"[[1.0, 0.0], [3.0, 2.0]]", exact, 0},
             {"[[0.12345679, 0.7], [0.34567893, 0.1]]", exact, 0},  // shortest of float32
             {"[[0.1234567890123456, 0.5]]", exact, 0},
         }) {
        CAPTURE(each.text);
        const auto printed = attn::cli::text_numbers(each.text).printed;
        REQUIRE(printed.has_value() == (each.decimals != exact));
        if (!printed) continue;
        CHECK(printed->decimals == each.decimals);
        CHECK(printed->significant == each.significant);
    }
}

}  // namespace check_files_test
