// Pictures from the command line: --heatmap, --plot and attn plot.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

using namespace attn::test;

namespace {

const std::string input = "data/journey.csv";

void in_scratch_with_data() {
    scratch_folder();
    std::filesystem::remove("data");
    std::filesystem::create_directory_symlink(data_path(""), "data");
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("heatmap: on standard error beside JSON, on standard output where nothing else goes") {
    in_scratch_with_data();
    const std::vector<std::string> words{"causal", input, "--d-out", "2", "--seed", "789"};
    const auto with = [&](std::vector<std::string> more) {
        more.insert(more.begin(), words.begin(), words.end());
        return run_attn(more);
    };
    const Outcome beside = with({"--heatmap"});
    CHECK(beside.code == 0);
    CHECK(beside.out == with({}).out);
    CHECK(contains(beside.err, "causal  attention_weights (6, 6)  seed 789\n"));
    CHECK(contains(beside.err, "╱╱ blocked"));
    const Outcome alone = with({"--heatmap", "--format", "none"});
    CHECK(alone.out == beside.err);
    CHECK(alone.err == "");
    const Outcome file = with({"--heatmap", "-o", "r.json"});
    CHECK(file.out == beside.err);
    CHECK(read_text("r.json") == beside.out);
    const Outcome again = run_attn({"plot", "r.json"});
    CHECK(again.out == beside.err);
    CHECK(again.err == "");
    CHECK(run_attn({"plot"}, beside.out).out == beside.err);
}

TEST_CASE("plot: a result of any format gives the picture that its question gives") {
    in_scratch_with_data();
    for (const char* suffix : {".svg", ".png", ".html"}) {
        CAPTURE(suffix);
        for (const std::vector<std::string>& mode : std::vector<std::vector<std::string>>{
                 {"causal", input, "--d-out", "2"},
                 {"multihead", "data/journey_twice.json", "--heads", "3", "--window", "1,0"},
                 {"self", input, "--mask", "mask.json", "--emit", "all"}}) {
            write_text("mask.json", "[[0, 0, 0, 0, 0, -Infinity]]");
            std::vector<std::string> words = mode;
            const std::string direct = std::string("direct") + suffix;
            words.insert(words.end(), {"--plot", direct, "-o", "r.json"});
            const Outcome outcome = run_attn(words);
            REQUIRE(outcome.err == "");
            words[words.size() - 1] = "r.npz";
            REQUIRE(run_attn(words).code == 0);
            for (const char* result : {"r.json", "r.npz"}) {
                const std::string later = std::string("later") + suffix;
                REQUIRE(run_attn({"plot", result, "-o", later}).err == "");
                CAPTURE(result);
                CAPTURE(mode[0]);
                CHECK((read_text(later) == read_text(direct)));  // too long to be shown
            }
        }
    }
}

TEST_CASE("plot: one of several arrays, on any scale") {
    in_scratch_with_data();
    const std::vector<std::string> words{"self", input, "--emit", "all", "-o", "r.json"};
    REQUIRE(run_attn(words).code == 0);
    for (const char* array :
         {"inputs", "queries", "keys", "values", "scores", "W_query", "mask", "context_vectors"})
        for (const char* scale : {"fixed", "row", "log", "global"}) {
            const Outcome outcome =
                run_attn({"plot", "r.json", "--array", array, "--color-scale", scale});
            CAPTURE(array);
            CHECK(outcome.code == 0);
            CHECK(contains(outcome.out, std::string("self  ") + array + " ("));
        }
    CHECK(contains(run_attn({"plot", "r.json:queries"}).out, "queries (6, 3)"));
    CHECK(contains(run_attn({"plot", input}).out, "array (6, 3)"));
    CHECK(run_attn({"self", input, "--emit", "scores,queries", "--heatmap", "--format", "none",
                    "--plot-array", "queries", "--color-scale", "log"})
              .code == 0);
}

TEST_CASE("plot: what cannot be drawn is one line of error, and no file") {
    in_scratch_with_data();
    const auto check = [](const std::vector<std::string>& words, int code,
                          const std::string& part) {
        const Outcome outcome = run_attn(words);
        CAPTURE(outcome.err);
        CHECK(outcome.code == code);
        CHECK(outcome.out == "");
        CHECK(contains(outcome.err, part));
        CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
    };
    check({"self", input, "--plot", "x.gif"}, 2,
          "expected a name that ends in .svg, .png or .html");
    check({"self", input, "--plot-array", "scores"}, 2, "--plot-array scores: nothing is drawn");
    check({"self", input, "--color-scale", "row"}, 2, "nothing is drawn");
    check({"self", input, "--heatmap", "--plot-array", "scores", "--format", "none"}, 2,
          "\"scores\" is not there to be drawn; expected attention_weights, context_vectors");
    check({"self", input, "--format", "none"}, 2, "leaves nothing to write");
    check({"self", input, "--format", "none", "--heatmap", "-o", "x.json"}, 2, "writes nothing");
    check({"self", input, "--emit", "logsumexp", "--plot", "x.svg"}, 2, "no array of rank 2 to 4");
    check({"plot", "nosuch.json"}, 4, "nosuch.json");
    check({"plot", input, "-o", "x.pdf"}, 2, "expected a name that ends in");
    check({"plot", input, "--array", "scores"}, 2, "expected array");
    check({"plot", input, "--color-scale", "rainbow"}, 2, "expected fixed, row, log or global");
    check({"plot", input, "--scale", "1"}, 2, "unknown flag");
    check({"batch", "--plot", "x.svg"}, 2, "no flag of attn batch");
    CHECK_FALSE(std::filesystem::exists("x.svg"));
}

TEST_CASE("plot: arrays of a file that do not go together are drawn as far as they do") {
    in_scratch_with_data();
    write_text("odd.json", R"({"schema": "attn.result/1", "mode": "causal", "tokens": ["a", 3],
"config": {"token": 18446744073709551615, "window": "x"}, "shapes": {"q_len": -1},
"attention_weights": [[1, 0, 0], [0.5, 0.5, 0]], "mask": [[0]], "logsumexp": [1]})");
    const Outcome outcome = run_attn({"plot", "odd.json"});
    CHECK(outcome.err == "");
    CHECK(contains(outcome.out, "causal  attention_weights (2, 3)"));
}
