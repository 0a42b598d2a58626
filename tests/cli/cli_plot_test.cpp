// Pictures from the command line: --heatmap, --plot and attn plot.
#include "tests/support/answers.hpp"
#include "tests/support/drawn_model.hpp"

namespace cli_plot_test {

using namespace attn::test;

TEST_CASE("plot: what a result says wrongly does no harm") {
    const std::string odd = R"({"schema": "attn.result/1", "mode": "causal", "tokens": ["a", 3],
"config": {"token": 18446744073709551615, "window": "x"}, "shapes": {"q_len": -1},
"attention_weights": [[1, 0, 0], [0.5, 0.5, 0]], "logsumexp": [1])";
    write_text("odd.json", odd + "}");
    const Outcome outcome = run_attn({"plot", "odd.json"});
    CHECK(contains(outcome.err, "odd.json: a plain array, drawn with the axes q_len 2, kv_len 3"));
    CHECK(contains(outcome.out, "causal  attention_weights (2, 3)"));
    write_text("odd.json", R"({"tokens": ["a", "b", "c"], "attention_weights": [[0.5, 0.5]]})");
    CHECK(contains(run_attn({"plot", "odd.json"}).err, "3 tokens for 1 queries"));
}

TEST_CASE("plot: labels of a CSV file, nulls, and numbers beyond float32") {
    CHECK(contains(run_attn({"plot", data_path("journey.csv")}).out, "\njourney "));
    const std::string nulls =
        run_attn({"causal", data_path("journey.csv"), "--emit", "all", "--nonfinite", "null"}).out;
    CHECK(contains(nulls, "null"));
    CHECK(contains(run_attn({"plot"}, nulls).out, "blank: masked"));
    write_text("wide.json", "[[1e200, 1e-60], [2e-60, -1e100]]");
    CHECK(run_attn({"plot", "wide.json", "-o", "wide.svg"}).code == 0);
    for (const char* number : {": 1e+200<", ": 1e-60<", ": 2e-60<", ": -1e+100<"})
        CHECK_MESSAGE(contains(read_text("wide.svg"), number), number);
    write_text("large.json", R"({"attention_weights": [[1e18, 0.5]]})");
    const Outcome large = run_attn({"plot", "large.json"});
    CHECK(large.code == 0);
    CHECK(contains(large.out, "1+"));
}

TEST_CASE("plot: numbers of other programs' arrays have the digits of their own type") {
    using Types = Words;
    for (const Types& types : {Types{"F32"}, Types{"F64"}, Types{"F32", "F32"}, Types{"F32", "F64"},
                               Types{"F64", "F32"}, Types{"F64", "F64"}}) {
        std::vector<StoredTensor> tensors;
        for (const std::string& type : types) {
            const std::size_t size = type == "F32" ? 4 : 8;
            const std::string bytes = drawn("a", 8, 0, 1).substr(0, 4 * size);
            tensors.push_back({"a" + std::to_string(tensors.size()), type, {2, 2}, bytes});
        }
        write_text("other.safetensors", safetensors_of(tensors));
        REQUIRE(run_attn(words_in("plot other.safetensors --array all -o page.html")).code == 0);
        const std::string page = read_text("page.html");
        for (std::size_t i = 0; i < types.size(); ++i) {
            CAPTURE(types[i]);
            const std::size_t map = page.find("id=\"map-" + std::to_string(i) + "\"");
            const std::size_t said = page.find("\"float32\":", map);
            CHECK(page.compare(said + 10, 5, types[i] == "F32" ? "true," : "false") == 0);
        }
    }
}

}  // namespace cli_plot_test
