// The real binary with good input: commands, formats, masks, kernels, help.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace cli_test {

using namespace attn::test;
using nlohmann::json;

namespace {

const std::string journey_csv =
    "token,x1,x2,x3\nYour,0.43,0.15,0.89\njourney,0.55,0.87,0.66\nstarts,0.57,0.85,0.64\n"
    "with,0.22,0.58,0.33\none,0.77,0.25,0.10\nstep,0.05,0.80,0.55\n";

Outcome good(const Words& arguments, const std::string& input = "") {
    Outcome outcome = run_attn(arguments, input);
    CHECK(outcome.err == "");
    CHECK(outcome.code == 0);
    return outcome;
}

/// A result without what differs when the same numbers come in another way.
json arrays_of(json result) {
    for (const char* key : {"config", "tokens", "id"}) result.erase(key);
    return result;
}

}  // namespace

TEST_CASE("cli: a csv file, standard input, '-' and the built-in example give the same numbers") {
    scratch_folder();
    write_text("journey.csv", journey_csv);
    const Words flags{"--d-out", "2", "--seed", "789"};
    const json from_file = answer(with({"self", "journey.csv"}, flags));
    CHECK(from_file["tokens"][1] == "journey");
    for (const auto& [arguments, input] :
         {std::pair(Words{"self"}, journey_csv),
          {{"self", "-"}, journey_csv},
          {{"self", "--example", "journey"}, ""},
          {{"self", "-"},
           "[[0.43,0.15,0.89],[0.55,0.87,0.66],[0.57,0.85,0.64],[0.22,0.58,0.33],"
           "[0.77,0.25,0.1],[0.05,0.8,0.55]]"}})
        CHECK(arrays_of(answer(with(arguments, flags), input)) == arrays_of(from_file));
}

TEST_CASE("cli: one row of an earlier layer keeps the label of its token") {
    const Outcome row = run_shell("attn self --example journey --token 2 | attn self");
    CHECK(row.code == 0);
    CHECK(json::parse(row.out)["tokens"] == json({"starts"}));
}

TEST_CASE("cli: a request document, and flags that win over it") {
    const std::string request =
        R"({"id": "a1", "mode": "causal", "inputs": [[0.43, 0.15, 0.89], [0.55, 0.87, 0.66]],
            "tokens": ["Your", "journey"], "d_out": 2, "seed": 123, "dropout": 0.5,
            "emit": ["context_vectors", "scores"]})";
    const json result = answer({"causal"}, request);
    CHECK(result["id"] == "a1");
    CHECK(result["tokens"] == json({"Your", "journey"}));
    CHECK(result.contains("scores"));
    CHECK_FALSE(result.contains("attention_weights"));
    const json other = answer({"causal", "--dropout", "0", "--emit", "dropout_mask"}, request);
    CHECK(other["config"]["dropout"] == 0.0);
    CHECK(other["dropout_mask"] == json({{1, 1}, {1, 1}}));
    CHECK_FALSE(other.contains("scores"));
}

TEST_CASE("cli: null in a request is the default") {
    CHECK(answer({"self"}, R"({"inputs": [[1, 2]], "d_out": null, "id": null})") ==
          answer({"self"}, R"({"inputs": [[1, 2]]})"));
}

TEST_CASE("cli: precision, nonfinite and pretty shape the JSON") {
    const Words ask =
        words_in("causal --example journey --d-out 1 --token 0 --emit masked_scores --precision 3");
    CHECK(contains(good(with(ask, {"--nonfinite", "null"})).out, ",null,null,null,null,null]]"));
    CHECK(contains(good(with(ask, {"--nonfinite", "literal"})).out, ",-Infinity]]"));
    CHECK(contains(good(with(ask, {"--pretty"})).out, "\n  \"masked_scores\": [\n    ["));
}

TEST_CASE("cli: the sentence example is --text with the same words") {
    json example = answer({"self", "--example", "sentence", "--embed-seed", "123"});
    const json text =
        answer({"self", "--text", "Life is short, eat dessert first", "--embed-seed", "123"});
    CHECK(example == text);
    CHECK(example["config"]["vocab_size"] == 50000);
    json config = example["config"];
    CHECK(answer({"self"}, config.dump()) == example);
}

TEST_CASE("cli: the examples of every help page run") {
    scratch_folder();
    write_text("tokens.csv", journey_csv);
    write_text("tokens.json", "[[1,2,3,4],[5,6,7,8]]");
    write_text("request.json", R"({"inputs": [[1,2,3,4],[5,6,7,8]]})");
    run_attn({"causal", "tokens.csv", "-o", "result.json"});
    for (const char* name : {"q.json", "k.json", "v.json"}) write_text(name, "[[1,2],[3,4]]");
    int examples = 0;
    for (const char* mode : {"", "self ", "causal ", "multihead ", "cross ", "sdpa ", "compare "}) {
        const std::string text = run_shell(std::string("attn ") + mode + "--help").out;
        const std::string block = text.substr(text.find("Examples:\n") + 10);
        for (std::size_t at = 0; block[at] == ' ';) {
            const std::size_t end = block.find('\n', at);
            const std::string line = block.substr(at, end - at);
            CAPTURE(line);
            const Outcome outcome = run_shell(line);
            // compare's 1 means that its inputs differ.
            CHECK(outcome.code <= (!contains(line, "compare") ? 0 : 1));
            CHECK(outcome.err == "");
            at = end + 1;
            ++examples;
        }
    }
    CHECK(examples >= 18);
}

namespace {

const Words suffixes{"json", "ndjson", "csv", "npy", "npz", "safetensors"};

}  // namespace

TEST_CASE("formats: piped input is known by its first bytes, or by the flag") {
    scratch_folder();
    const json expected = answer({"self", data_path("arrays/matrix_f4.npy"), "--init", "none"});
    for (const std::string& suffix : suffixes) {
        CAPTURE(suffix);
        const std::string file = "piped." + suffix;
        CHECK(run_attn({"self", data_path("arrays/matrix_f4.npy"), "--init", "none", "--emit",
                        "inputs", "-o", file})
                  .err == "");
        const bool named = suffix != "csv" && suffix != "npy";
        const std::string input = named ? "-:inputs" : "-";
        const std::string bytes = read_text(file);
        CHECK(answer({"self", input, "--init", "none"}, bytes)["context_vectors"] ==
              expected["context_vectors"]);
        CHECK(answer({"self", input, "--init", "none", "--input-format", suffix},
                     bytes)["context_vectors"] == expected["context_vectors"]);
    }
}

TEST_CASE("formats: the operator's arrays may be in one file, or be selected from several") {
    scratch_folder();
    write_text("request.json", R"({"query": [[1,0],[0,1]], "key": [[1,2],[0,1],[2,0]],
                                   "value": [[1],[2],[4]], "mask": [[0,0,-1],[0,-2,0]]})");
    const json expected = answer({"sdpa", "request.json"});
    CHECK(run_attn(words_in("sdpa request.json --emit queries,keys,values -o three.npz")).err ==
          "");
    write_text("mask.csv", "0,0,-1\n0,-2,0\n");
    const json picked =
        answer(words_in("sdpa --query three.npz:queries --key three.npz:keys --value "
                        "three.npz:values --mask mask.csv"));
    CHECK(picked["context_vectors"] == expected["context_vectors"]);
    CHECK(answer(words_in("sdpa --query request.json:query --key request.json:key --value "
                          "request.json:value --mask request.json:mask"))["context_vectors"] ==
          expected["context_vectors"]);
}

TEST_CASE("formats: a file of one array takes the context vectors") {
    scratch_folder();
    for (const std::string suffix : {"csv", "npy"}) {
        const std::string file = "one." + suffix;
        CHECK(run_attn({"self", data_path("journey.csv"), "-o", file}).err == "");
        CHECK(run_attn({"compare", file, "one.csv"}).code == 0);
    }
    CHECK(read_text("one.csv").find('#') == std::string::npos);
    CHECK(run_attn({"self", data_path("journey_twice.json"), "--format", "csv"})
              .out.starts_with("# shape: 2,6,3\n"));
}

TEST_CASE("formats: inputs of a request may be a path") {
    scratch_folder();
    write_text("m.json", "[[1,2],[3,4]]");
    write_text("r.json", R"({"inputs": "m.json", "init": "none"})");
    CHECK(answer({"self", "r.json"}) == answer({"self", "m.json", "--init", "none"}));
}

TEST_CASE("kernel: auto takes the reference where the work is small, and where steps are emitted") {
    const auto arrays = [](const std::string& size, const Words& more) {
        json result = answer(Words{"causal", "--randn", size} + more);
        result.erase("config");
        return result.dump();
    };
    const Words reference{"--kernel", "reference"};
    CHECK(arrays("6,4", {}) == arrays("6,4", reference));
    CHECK(arrays("300,32", {}) != arrays("300,32", reference));
    const Words steps{"--init", "none", "--emit", "mask,context_vectors"};
    CHECK(arrays("300,32", steps) == arrays("300,32", steps + reference));
}

TEST_CASE("kernel: ATTN_KERNEL is --kernel where nothing else names one") {
    const auto config = [](const std::string& line) {
        const Outcome outcome = run_shell(line);
        REQUIRE(outcome.code == 0);
        return json::parse(outcome.out)["config"]["kernel"].get<std::string>();
    };
    CHECK(config("attn causal --randn 40,8") == "auto");
    CHECK(config("ATTN_KERNEL= attn causal --randn 40,8") == "auto");
    CHECK(config("ATTN_KERNEL=generic attn causal --randn 40,8") == "generic");
    CHECK(config("ATTN_KERNEL=generic attn causal --randn 40,8 --kernel reference") == "reference");
}

namespace {

const std::string qkv =
    R"("query": [[1,0],[0,1],[1,1]], "key": [[1,2],[0,1],[2,0]], "value": [[1],[2],[4]])";

}  // namespace

TEST_CASE("operator: a mask from JSON, from CSV of 0 and 1, inline, and from a result") {
    scratch_folder();
    write_text("mask.json", "[[true,false,true],[true,true,true],[false,false,true]]");
    write_text("mask.csv", "1,0,1\n1,1,1\n0,0,1\n");
    const std::string request = "{" + qkv + "}";
    const json from_json = answer(words_in("sdpa - --mask mask.json --mask-true keep"), request);
    CHECK(from_json["attention_weights"][2] == json({0, 0, 1}));
    const json from_csv = answer(words_in("sdpa - --mask mask.csv --mask-true keep"), request);
    CHECK(from_csv["attention_weights"] == from_json["attention_weights"]);
    const json inlined = answer({"sdpa"}, "{" + qkv +
                                              R"(, "mask": [[true,false,true],[true,true,true],
                                                            [false,false,true]], "mask_true": "keep"})");
    CHECK(inlined["attention_weights"] == from_json["attention_weights"]);
    const json dropped = answer(words_in("sdpa - --mask mask.json --mask-true drop"), request);
    CHECK(dropped["attention_weights"][0] == json({0, 1, 0}));
    CHECK(dropped["attention_weights"][1] == json({0, 0, 0}));
}

TEST_CASE("operator: masks of 0 and 1 are boolean where only mask_true can mean them") {
    scratch_folder();
    const auto mask_of = [](const std::string& more) {
        return answer({"sdpa", "-", "--emit", "mask"}, "{" + qkv + more + "}")["mask"];
    };
    CHECK(mask_of(R"(, "mask": [1, 0, 1], "mask_true": "keep")")[0] == json({1, 0, 1}));
    // A mask of true and false explains mask_true; the zeros with it add nothing.
    CHECK(mask_of(R"(, "mask": [true, false, true], "key_padding_mask": [0.0, 0.0, 0.0],
                     "mask_true": "keep")")[0] == json({1, 0, 1}));
    for (const char* mask : {"[1, 0, 1]", "[[1, 0, 1]]", "[1.0, 0.0, 1.0]"}) {
        const std::string request = "{" + qkv + R"(, "mask": )" + mask + "}";
        check_error({"sdpa"}, request, 2, "a mask of 0 and 1, which may be boolean or additive");
        CHECK(answer(words_in("sdpa - --emit mask --mask-kind additive"), request)["mask"][0] ==
              json({1, 1, 1}));
        CHECK(answer(words_in("sdpa - --emit mask --mask-true keep --mask-kind boolean"),
                     request)["mask"][0] == json({1, 0, 1}));
    }
    // With a boolean mask, a mask of 0 and 1 may still be either.
    const std::string both = R"(, "mask": [true, false, true], "key_padding_mask": [1, 1, 0],
                                 "mask_true": "keep")";
    check_error({"sdpa"}, "{" + qkv + both + "}", 2, "expected --mask-kind boolean|additive");
    CHECK(mask_of(both + R"(, "mask_kind": "additive")")[0] == json({1, 0, 1}));
    CHECK(mask_of(both + R"(, "mask_kind": "boolean")")[0] == json({1, 0, 0}));
    // The flags for INPUT's header do not apply to the mask.
    write_text("h.csv", "x,y\n1,2\n3,4\n");
    write_text("pairs.csv", "1,0\n1,1\n");
    CHECK(
        answer(words_in(
            "self h.csv --csv-header yes --mask pairs.csv --mask-true keep --emit mask"))["mask"] ==
        json({{1, 0}, {1, 1}}));
}

}  // namespace cli_test
