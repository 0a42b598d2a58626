// The operator's options through the real binary: flags, requests, files, errors.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/support.hpp"

namespace cli_operator_test {

using namespace attn::test;
using nlohmann::json;

namespace {

const std::string qkv =
    R"("query": [[1,0],[0,1],[1,1]], "key": [[1,2],[0,1],[2,0]], "value": [[1],[2],[4]])";

}  // namespace

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
    // A mask of true and false explains mask_true; the zeros with it add nothing.
    CHECK(mask_of(R"(, "mask": [true, false, true], "key_padding_mask": [0.0, 0.0, 0.0],
                     "mask_true": "keep")")[0] == json({1, 0, 1}));
    const std::string ambiguous =
        "a mask of 0 and 1, which may be boolean or additive; expected --mask-true keep|drop, "
        "--mask-kind additive, or booleans (json, npy)";
    check_error({"sdpa", "-", "--mask", "m.csv"}, "{" + qkv + "}", 2, "m.csv: " + ambiguous);
    for (const char* mask : {"[1, 0, 1]", "[[1, 0, 1]]", "[1.0, 0.0, 1.0]"}) {
        const std::string request = "{" + qkv + R"(, "mask": )" + mask + "}";
        check_error({"sdpa"}, request, 2, ambiguous);
        CHECK(answer({"sdpa", "-", "--emit", "mask", "--mask-kind", "additive"},
                     request)["mask"][0] == json({1, 1, 1}));
        CHECK(
            answer({"sdpa", "-", "--emit", "mask", "--mask-true", "keep", "--mask-kind", "boolean"},
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
    CHECK(answer({"self", "h.csv", "--csv-header", "yes", "--mask", "pairs.csv", "--mask-true",
                  "keep", "--emit", "mask"})["mask"] == json({{1, 0}, {1, 1}}));
}

TEST_CASE("operator: renormalize agrees with neg-inf where a masked key outweighs all, or is NaN") {
    for (const char* masked : {"200", "NaN", "Infinity"}) {
        const std::string request = R"({"query": [[1]], "key": [[0], [)" + std::string(masked) +
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

TEST_CASE("operator: NaN in keys and values is read, and hidden where masked") {
    const json result = answer({"sdpa", "-", "--kv-lengths", "2"},
                               R"({"query": [[1,0]], "key": [[1,2],[0,1],[NaN,0]],
                                   "value": [[1],[2],[Infinity]]})");
    CHECK(result["context_vectors"][0][0].is_number());
    check_error({"sdpa"}, R"({"query": [[NaN]], "key": [[1]], "value": [[1]]})", 3,
                "<stdin>:1:13: NaN is not finite; expected a finite number");
}

}  // namespace cli_operator_test
