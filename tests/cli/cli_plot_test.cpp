// Pictures from the command line: --heatmap, --plot and attn plot.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/answers.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/drawn_model.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace cli_plot_test {

using namespace attn::test;

namespace {

const std::string input = "data/journey.csv";

void in_scratch_with_data() {
    scratch_folder();
    std::filesystem::remove("data");
    std::filesystem::create_directory_symlink(data_path(""), "data");
}

}  // namespace

TEST_CASE("heatmap: on standard error with JSON, on standard output if that is otherwise unused") {
    in_scratch_with_data();
    const Words words{"causal", input, "--d-out", "2", "--seed", "789"};
    const auto with = [&](const Words& more) { return run_attn(words + more); };
    const Outcome beside = with({"--heatmap"});
    CHECK(beside.code == 0);
    CHECK(beside.out == with({}).out);
    CHECK(contains(beside.err, "causal  attention_weights (6, 6)  seed 789\n"));
    CHECK(contains(beside.err, "blank: masked"));
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

TEST_CASE("plot: what a result says wrongly does no harm") {
    in_scratch_with_data();
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

TEST_CASE("plot: FILE:NAME of a result, of standard input too, is drawn as --array draws it") {
    in_scratch_with_data();
    const Words words{"multihead", input, "--heads", "3", "--emit", "all"};
    CHECK(run_attn(with(words, {"-o", "r.npz"})).code == 0);
    const std::string json = run_attn(words).out;
    const std::string drawn = run_attn({"plot", "r.npz", "--array", "scores"}).out;
    CHECK(contains(drawn, "head 2\n"));
    CHECK(contains(drawn, "blank: masked"));
    CHECK(run_attn({"plot", "r.npz:scores"}).out == drawn);
    CHECK(run_attn({"plot", "-:scores"}, json).out == drawn);
    CHECK(run_attn({"plot", "--", "r.npz:scores"}).out == drawn);
    CHECK(run_attn({"compare", "-:scores", "r.npz:scores"}, json).code == 0);
}

TEST_CASE("plot: the axes of every array are those of its question") {
    in_scratch_with_data();
    write_text("short.json", "[[1, 2], [2, 1]]");
    write_text("long.json", "[[1, 0.5], [0.2, 1], [0.3, 0.1]]");
    for (const Words& words : std::vector<Words>{
             {"multihead", input, "--heads", "4", "--d-out", "8", "--kv-heads", "2"},
             words_in("multihead data/journey_twice.json --heads 2 --d-out 2 --style wrapper "
                      "--qkv-bias"),
             {"self", "data/journey_twice.json"},
             {"self", "data/journey_twice.json", "--kv-lengths", "6,4"},
             words_in("causal data/journey_twice.json --kv-lengths 1,3 --token 4"),
             words_in("multihead data/journey_twice.json --heads 3 --no-causal --kv-lengths 2,5 "
                      "--window 2,1"),
             words_in("cross short.json --context long.json --causal --causal-align bottom-right "
                      "--token 0"),
             words_in("sdpa --query long.json --key long.json --value long.json --past-key "
                      "short.json --past-value short.json --causal --causal-align top-left")}) {
        CAPTURE(words);
        CHECK(run_attn(with(words, words_in("--emit all --plot asked.html -o r.json"))).code == 0);
        CHECK(run_attn({"plot", "r.json", "-o", "read.html"}).err == "");
        CHECK((read_text("asked.html") == read_text("read.html")));
    }
}

TEST_CASE("plot: labels of a CSV file, nulls, and numbers beyond float32") {
    in_scratch_with_data();
    CHECK(contains(run_attn({"plot", input}).out, "\njourney "));
    const std::string nulls =
        run_attn({"causal", input, "--emit", "all", "--nonfinite", "null"}).out;
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
    scratch_folder();
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
