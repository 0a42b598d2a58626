// The operator's options through the real binary: flags, requests, files, errors.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

using namespace attn::test;
using nlohmann::json;

namespace {

const std::string qkv =
    R"("query": [[1,0],[0,1],[1,1]], "key": [[1,2],[0,1],[2,0]], "value": [[1],[2],[4]])";

json answer(const std::vector<std::string>& arguments, const std::string& input = "") {
    const Outcome outcome = run_attn(arguments, input);
    CHECK(outcome.err == "");
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
}

void check_error(const std::vector<std::string>& arguments, const std::string& input, int code,
                 const std::string& message) {
    CAPTURE(input);
    const Outcome outcome = run_attn(arguments, input);
    CHECK(outcome.err == "attn: error: " + message + "\n");
    CHECK(outcome.code == code);
    CHECK(outcome.out == "");
}

}  // namespace

TEST_CASE("operator: flags, request keys and config agree on every option") {
    scratch_folder();
    write_text("q.json", "[[1,0],[0,1],[1,1]]");
    write_text("k.json", "[[1,2],[0,1],[2,0]]");
    write_text("v.json", "[[1],[2],[4]]");
    write_text("mask.json",
               "[[true,false,true,false],[false,false,false,false],"
               "[false,true,false,false]]");
    write_text("padding.json", "[[false,false,true,false]]");
    write_text("past_key.json", "[[1,1]]");
    write_text("past_value.json", "[[3]]");
    json by_flags = answer({"sdpa",
                            "--query",
                            "q.json",
                            "--key",
                            "k.json",
                            "--value",
                            "v.json",
                            "--mask",
                            "mask.json",
                            "--key-padding-mask",
                            "padding.json",
                            "--past-key",
                            "past_key.json",
                            "--past-value",
                            "past_value.json",
                            "--causal",
                            "--causal-align",
                            "bottom-right",
                            "--window",
                            "2,0",
                            "--softcap",
                            "5",
                            "--alibi",
                            "--rope",
                            "interleaved",
                            "--rope-base",
                            "100",
                            "--rope-dims",
                            "2",
                            "--sink",
                            "0.5",
                            "--mask-true",
                            "drop",
                            "--kv-lengths",
                            "4",
                            "--emit",
                            "all"});
    json request{{"query", "q.json"},
                 {"key", "k.json"},
                 {"value", "v.json"},
                 {"mask", "mask.json"},
                 {"key_padding_mask", "padding.json"},
                 {"past_key", "past_key.json"},
                 {"past_value", "past_value.json"}};
    json by_config = request;
    request.update(json{{"causal", true},
                        {"causal_align", "bottom-right"},
                        {"window", {2, 0}},
                        {"softcap", 5},
                        {"alibi", true},
                        {"rope", "interleaved"},
                        {"rope_base", 100},
                        {"rope_dims", 2},
                        {"sink", {0.5}},
                        {"mask_true", "drop"},
                        {"kv_lengths", {4}},
                        {"emit", {"all"}}});
    CHECK(answer({"sdpa"}, request.dump()) == by_flags);
    by_config.update(by_flags["config"]);
    CHECK(answer({"sdpa"}, by_config.dump()) == by_flags);
    CHECK(by_flags["attention_weights"][0][0] == 0);  // dropped by the mask
}

TEST_CASE("operator: a mask from JSON, from CSV of 0 and 1, inline, and from a result") {
    scratch_folder();
    write_text("mask.json", "[[true,false,true],[true,true,true],[false,false,true]]");
    write_text("mask.csv", "1,0,1\n1,1,1\n0,0,1\n");
    const std::string request = "{" + qkv + "}";
    const json from_json =
        answer({"sdpa", "-", "--mask", "mask.json", "--mask-true", "keep"}, request);
    CHECK(from_json["attention_weights"][2] == json({0, 0, 1}));
    const json from_csv =
        answer({"sdpa", "-", "--mask", "mask.csv", "--mask-true", "keep"}, request);
    CHECK(from_csv["attention_weights"] == from_json["attention_weights"]);
    const json inlined = answer({"sdpa"}, "{" + qkv +
                                              R"(, "mask": [[true,false,true],[true,true,true],
                                                            [false,false,true]], "mask_true": "keep"})");
    CHECK(inlined["attention_weights"] == from_json["attention_weights"]);
    const json dropped =
        answer({"sdpa", "-", "--mask", "mask.json", "--mask-true", "drop"}, request);
    CHECK(dropped["attention_weights"][0] == json({0, 1, 0}));
    CHECK(dropped["attention_weights"][1] == json({0, 0, 0}));
}

TEST_CASE("operator: masks of 0 and 1 are boolean where only mask_true can mean them") {
    scratch_folder();
    write_text("m.csv", "1,0,1\n1,1,1\n0,0,1\n");
    write_text("l.csv", "a,b\n1,0\n0,1\n");
    const auto mask_of = [](const std::string& more) {
        return answer({"sdpa", "-", "--emit", "mask"}, "{" + qkv + more + "}")["mask"];
    };
    CHECK(mask_of(R"(, "mask": [1, 0, 1], "mask_true": "keep")")[0] == json({1, 0, 1}));
    const Outcome added =
        run_attn({"sdpa", "-", "--emit", "mask"}, "{" + qkv + R"(, "mask": [1, 0, 1]})");
    CHECK(json::parse(added.out)["mask"][0] == json({1, 1, 1}));
    CHECK(
        added.err.ends_with("holds 0 and 1, which are added to the scores; --mask-true keep or "
                            "drop takes them for a boolean mask\n"));
    // A mask of true and false explains mask_true; the zeros with it add nothing.
    CHECK(mask_of(R"(, "mask": [true, false, true], "key_padding_mask": [0.0, 0.0, 0.0],
                     "mask_true": "keep")")[0] == json({1, 0, 1}));
    check_error({"sdpa", "-", "--mask", "m.csv"}, "{" + qkv + "}", 2,
                "m.csv: a mask of 0 and 1, which may be boolean or additive; expected --mask-true "
                "keep|drop, or booleans (json, npy)");
    // The flags for INPUT's header do not apply to the mask.
    write_text("h.csv", "x,y\n1,2\n3,4\n");
    write_text("pairs.csv", "1,0\n1,1\n");
    CHECK(answer({"self", "h.csv", "--csv-header", "yes", "--mask", "pairs.csv", "--mask-true",
                  "keep", "--emit", "mask"})["mask"] == json({{1, 0}, {1, 1}}));
}

TEST_CASE(
    "operator: renormalize agrees with neg-inf where a blocked key outweighs all, or is NaN") {
    for (const char* blocked : {"200", "NaN", "Infinity"}) {
        const std::string request = R"({"query": [[1]], "key": [[0], [)" + std::string(blocked) +
                                    R"(]], "value": [[5], [7]], "scale": 1, "mask": [true, false],
                                    "mask_true": "keep"})";
        const json result = answer({"sdpa", "-", "--mask-method", "renormalize"}, request);
        CHECK(result["attention_weights"] == json({{1, 0}}));
        CHECK(result["context_vectors"] == json({{5}}));
    }
}

TEST_CASE(
    "operator: logsumexp of an empty row is -Infinity, with renormalize too, and that of the "
    "sink") {
    for (const char* kernel : {"reference", "generic", "auto"}) {
        const json sunk =
            answer({"self", "-", "--emit", "logsumexp,context_vectors", "--kernel", kernel},
                   R"({"inputs": [[1,2]], "mask": [[false]], "mask_true": "keep", "sink": [2]})");
        CHECK(sunk["logsumexp"] == json({2}));
        CHECK(sunk["context_vectors"] == json({{0, 0}}));
    }
    const json added = answer({"self", "-", "--mask-method", "renormalize", "--emit", "logsumexp"},
                              R"({"inputs": [[1,2]], "mask": [[-Infinity]]})");
    CHECK(added["logsumexp"] == json({"-Infinity"}));
}

TEST_CASE("operator: additive masks take bare and quoted infinities; numbers need no polarity") {
    const json bare = answer({"sdpa"}, "{" + qkv + R"(, "mask": [0.5, -Infinity, 0]})");
    const json quoted = answer({"sdpa"}, "{" + qkv + R"(, "mask": [0.5, "-Infinity", 0]})");
    CHECK(bare["attention_weights"] == quoted["attention_weights"]);
    CHECK(bare["attention_weights"][0][1] == 0);
}

TEST_CASE("operator: NaN in keys and values is read, and hidden where blocked") {
    const json result = answer({"sdpa", "-", "--kv-lengths", "2"},
                               R"({"query": [[1,0]], "key": [[1,2],[0,1],[NaN,0]],
                                   "value": [[1],[2],[Infinity]]})");
    CHECK(result["context_vectors"][0][0].is_number());
    check_error({"sdpa"}, R"({"query": [[NaN]], "key": [[1]], "value": [[1]]})", 3,
                "<stdin>:1:13: NaN is not finite; expected a finite number");
}

TEST_CASE("operator: lists come with commas, as JSON lists and as one number") {
    const auto window = [](const std::string& text) {
        return answer({"sdpa"}, "{" + qkv + ", \"window\": " + text + "}")["config"]["window"];
    };
    CHECK(window("[1, 0]") == json({1, 0}));
    CHECK(window("[1]") == json({1, -1}));
    CHECK(window("1") == json({1, -1}));
    CHECK(window("\"1,0\"") == json({1, 0}));
    CHECK(answer({"sdpa", "-", "--window", "1,0"}, "{" + qkv + "}")["config"]["window"] ==
          json({1, 0}));
}

TEST_CASE("operator: cross from files, one head and several") {
    scratch_folder();
    write_text("context.csv", "word,a,b\nun,1,2\ndeux,3,4\n");
    const json one =
        answer({"cross", "--example", "journey", "--context", "context.csv", "--d-out", "4"});
    CHECK(shape_of(one["attention_weights"]) == std::vector<std::size_t>{6, 2});
    CHECK(shape_of(one["context_vectors"]) == std::vector<std::size_t>{6, 4});
    const json two = answer({"cross", "--example", "journey", "--context", "context.csv", "--d-out",
                             "4", "--heads", "2", "--average-heads"});
    CHECK(shape_of(two["attention_weights"]) == std::vector<std::size_t>{6, 2});
    CHECK(two["config"]["out_proj"] == true);
    const Outcome table = run_attn({"cross", "--example", "journey", "--context", "context.csv",
                                    "--format", "table", "--emit", "attention_weights"});
    CHECK(table.out.find("       un    deux\nYour") != std::string::npos);
}

TEST_CASE("operator: errors") {
    for (const auto& [arguments, input, code, message] :
         std::vector<std::tuple<std::vector<std::string>, std::string, int, std::string>>{
             {{"sdpa", "-", "--causal"},
              R"({"query": [[1]], "key": [[1],[2]], "value": [[1],[2]]})",
              2,
              "--causal: 1 queries and 2 keys, 0 of them cached; expected --causal-align "
              "top-left|bottom-right"},
             {{"sdpa"},
              "{" + qkv + R"(, "mask": [[true]]})",
              2,
              "<stdin>:1:92: a boolean mask, and libraries differ on what true means; expected "
              "--mask-true keep|drop"},
             {{"sdpa", "-", "--mask-true", "keep"},
              "{" + qkv + "}",
              2,
              "--mask-true keep: there is no boolean mask; expected one of true and false, or of 0 "
              "and 1"},
             {{"sdpa"},
              "{" + qkv + R"(, "mask": [[0, 0]]})",
              3,
              "<stdin>:1:92: shape (1, 2); expected what broadcasts to (batch 1, heads 1, q_len 3, "
              "kv_len "
              "3)"},
             {{"sdpa"},
              "{" + qkv + R"(, "mask": [true, 0, 1]})",
              3,
              "<stdin>:1:99: found '0' among booleans; expected true or false"},
             {{"sdpa"},
              "{" + qkv + R"(, "mask": [0, true]})",
              3,
              "<stdin>:1:96: a boolean among numbers; expected a number"},
             {{"sdpa"},
              R"({"query": [[1,2]], "key": [[1]], "value": [[1]]})",
              3,
              "<stdin>:1:27: shape (1, 1); expected 2 columns as in query (1, 2)"},
             {{"sdpa"},
              R"({"query": [[[1]]], "key": [[1]], "value": [[1]]})",
              3,
              "<stdin>:1:27: shape (1, 1); expected rank 3 as query (1, 1, 1) has"},
             {{"sdpa"},
              R"({"query": [[[1]],[[1]],[[1]]], "key": [[[1]],[[1]]], "value": [[[1]],[[1]]]})",
              2,
              "--kv-heads: 3 heads are not a multiple of 2 (remainder 1); expected a divisor of "
              "the heads"},
             {{"sdpa", "-", "--heads", "2"},
              R"({"query": [[1,2,3]], "key": [[1,2]], "value": [[1,2]]})",
              3,
              "<stdin>:1:11: shape (1, 3); expected a multiple of 2 columns, one part a head"},
             {{"sdpa", "-", "--past-key", "-"},
              "",
              2,
              "-: standard input named twice; expected it once"},
             {{"sdpa"},
              "{" + qkv + R"(, "past_key": [[1,2]]})",
              2,
              "<stdin>:1:96: has no past_value with it; expected both"},
             {{"sdpa"},
              "{" + qkv + R"(, "past_key": [[1]], "past_value": [[1]]})",
              3,
              "<stdin>:1:96: shape (1, 1); expected (1, 2)"},
             {{"sdpa", "-", "--kv-lengths", "1,2"},
              "{" + qkv + "}",
              2,
              "--kv-lengths 1,2: lengths for 2 batch entries; expected 1"},
             {{"sdpa", "-", "--kv-lengths", "4"},
              "{" + qkv + "}",
              2,
              "--kv-lengths 4: a length of 4; expected at most 3 keys"},
             {{"sdpa", "-", "--window", "1,2,3"},
              "{" + qkv + "}",
              2,
              "--window 1,2,3: not such a list; expected one or two integers from -1 to "
              "2147483648"},
             {{"sdpa", "-", "--window", "-2"},
              "{" + qkv + "}",
              2,
              "--window -2: not such a list; expected one or two integers from -1 to "
              "2147483648"},
             {{"sdpa", "-", "--sink", "1,2"},
              "{" + qkv + "}",
              2,
              "--sink 1,2: logits for 2 heads; expected 1"},
             {{"sdpa", "-", "--rope", "half", "--rope-dims", "3"},
              "{" + qkv + "}",
              2,
              "--rope-dims 3: 3 of 2 dimensions a head; expected an even number of at most as "
              "many"},
             {{"sdpa", "-", "--rope-dims", "2"},
              "{" + qkv + "}",
              2,
              "--rope-dims 2: requires --rope half|interleaved"},
             {{"sdpa", "-", "--softcap", "-1"},
              "{" + qkv + "}",
              2,
              "--softcap -1: out of range; expected a number of at least 0"},
             {{"sdpa", "-", "--average-heads"},
              "{" + qkv + "}",
              2,
              "--average-heads: there is no heads axis; expected several heads"},
             {{"sdpa", "-", "--causal-align", "top-left"},
              "{" + qkv + "}",
              2,
              "--causal-align top-left: requires --causal, --window or --alibi"},
             {{"multihead", "--init", "none", "--heads", "2", "--kv-heads", "1"},
              "[[1,2,3,4]]",
              2,
              "--kv-heads 1: --init none has no projections to fewer key heads; expected --kv-heads 2"},
             {{"self", "-", "--scale", "1e39"},
              "[[1]]",
              2,
              "--scale 1e39: overflows float32; expected at most 3.4028235e38, or dtype float64"},
             {{"self", "-", "--sink=-1e39"},
              "[[1]]",
              2,
              "--sink -1e39: overflows float32; expected at most 3.4028235e38, or dtype float64"},
             {{"self", "-", "--rope-base", "2"},
              "[[1]]",
              2,
              "--rope-base 2: requires --rope half|interleaved"},
             {{"self", "-", "--window=", "--pretty"},
              "[[1]]",
              2,
              "--window: requires a value; expected --window LEFT[,RIGHT]"},
             {{"self"},
              R"({"inputs": [[1]], "mask": "-"})",
              2,
              "<stdin>:1:19: mask \"-\": standard input named twice; expected it once"},
             {{"cross", "--example", "journey"},
              "",
              2,
              "--context: is missing; expected a file, or \"context\" in the request"},
             {{"cross", "-", "--out-proj"},
              R"({"inputs": [[1]], "context": [[1]]})",
              2,
              "--out-proj: requires --heads"},
             {{"cross"},
              R"({"inputs": [[1]], "context": [[[1]]]})",
              3,
              "<stdin>:1:30: shape (1, 1, 1); expected the rank and batch of the input, (1, 1)"},
             {{"multihead", "--heads", "4", "--kv-heads", "3"},
              "[[1,2,3,4]]",
              2,
              "--kv-heads 3: 4 heads are not a multiple of 3 (remainder 1); expected a divisor of "
              "the "
              "heads"},
             {{"multihead", "--heads", "2", "--style", "wrapper", "--kv-heads", "1"},
              "[[1,2,3,4]]",
              2,
              "--kv-heads 1: --style wrapper has no grouped heads; expected --kv-heads 2"}})
        check_error(arguments, input, code, message);
}
