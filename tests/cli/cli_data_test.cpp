// Formats through the real binary: every array can come in and go out in every format.
#include <doctest/doctest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/support.hpp"

namespace cli_data_test {

using namespace attn::test;
using nlohmann::json;

namespace {

const Words suffixes{"json", "ndjson", "csv", "npy", "npz", "safetensors"};

std::string arrays(const std::string& name) {
    return data_path("arrays/" + name);
}

}  // namespace

TEST_CASE("formats: piped input is known by its first bytes, or by the flag") {
    scratch_folder();
    const json expected = answer({"self", arrays("matrix_f4.npy"), "--init", "none"});
    for (const std::string& suffix : suffixes) {
        CAPTURE(suffix);
        const std::string file = "piped." + suffix;
        CHECK(run_attn({"self", arrays("matrix_f4.npy"), "--init", "none", "--emit", "inputs", "-o",
                        file})
                  .err == "");
        const bool named = suffix != "csv" && suffix != "npy";
        const std::string input = named ? "-:inputs" : "-";
        const std::string bytes = read_text(file);
        CHECK(answer({"self", input, "--init", "none"}, bytes)["context_vectors"] ==
              expected["context_vectors"]);
        CHECK(answer({"self", input, "--init", "none", "--input-format", suffix},
                     bytes)["context_vectors"] == expected["context_vectors"]);
    }
    check_error({"self", "-", "--input-format", "npy"}, "[[1,2]]", 3, "too few for an npy header");
    check_error({"self", "-", "--input-format", "npz"}, "[[1,2],[3,4],[5,6],[7,8]]", 3,
                "no zip file");
}

TEST_CASE("formats: the operator's arrays may be in one file, or be selected from several") {
    scratch_folder();
    write_text("request.json", R"({"query": [[1,0],[0,1]], "key": [[1,2],[0,1],[2,0]],
                                   "value": [[1],[2],[4]], "mask": [[0,0,-1],[0,-2,0]]})");
    const json expected = answer({"sdpa", "request.json"});
    CHECK(run_attn({"sdpa", "request.json", "--emit", "queries,keys,values", "-o", "three.npz"})
              .err == "");
    write_text("mask.csv", "0,0,-1\n0,-2,0\n");
    const json picked = answer({"sdpa", "--query", "three.npz:queries", "--key", "three.npz:keys",
                                "--value", "three.npz:values", "--mask", "mask.csv"});
    CHECK(picked["context_vectors"] == expected["context_vectors"]);
    CHECK(answer({"sdpa", "--query", "request.json:query", "--key", "request.json:key", "--value",
                  "request.json:value", "--mask", "request.json:mask"})["context_vectors"] ==
          expected["context_vectors"]);
    check_error(
        {"sdpa", "--query", "three.npz", "--key", "three.npz:keys", "--value", "three.npz:values"},
        "", 3, "several arrays: queries (2, 2), keys (3, 2), values (3, 1)");
    check_error({"sdpa", "--query", "three.npz:q", "--key", "three.npz:keys", "--value",
                 "three.npz:values"},
                "", 3, "has no array \"q\"; there are queries (2, 2)");
}

TEST_CASE("formats: a file of one array takes the context vectors, or the one that is named") {
    scratch_folder();
    for (const std::string suffix : {"csv", "npy"}) {
        const std::string file = "one." + suffix;
        CHECK(run_attn({"self", data_path("journey.csv"), "-o", file}).err == "");
        CHECK(run_attn({"compare", file, "one.csv"}).code == 0);
        check_error({"self", data_path("journey.csv"), "--emit", "scores,mask", "-o", file}, "", 2,
                    "holds one array");
        check_error({"self", data_path("journey.csv"), "--pretty", "-o", file}, "", 2,
                    "--pretty: requires --format json");
    }
    check_error({"self", data_path("journey.csv"), "--precision", "3", "--format", "npz"}, "", 2,
                "--precision 3: requires a format with digits");
    CHECK(read_text("one.csv").find('#') == std::string::npos);
    CHECK(run_attn({"self", data_path("journey_twice.json"), "--format", "csv"})
              .out.starts_with("# shape: 2,6,3\n"));
}

TEST_CASE("formats: inputs of a request may be a path, and no half file is left behind") {
    scratch_folder();
    write_text("m.json", "[[1,2],[3,4]]");
    write_text("r.json", R"({"inputs": "m.json", "init": "none"})");
    CHECK(answer({"self", "r.json"}) == answer({"self", "m.json", "--init", "none"}));
    check_error({"self", "m.json", "--save-weights", "w.txt"}, "", 2, "names no format");
    check_error({"self", "m.json", "--init", "none", "--save-weights", "w.npz"}, "", 2,
                "--init none has no parameters");
    CHECK_FALSE(std::filesystem::exists("w.npz"));
}

}  // namespace cli_data_test
