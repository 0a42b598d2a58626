// The real binary with bad input: the whole message, the exit code, nothing on standard output.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

using namespace attn::test;

namespace {

struct Case {
    std::vector<std::string> arguments;
    std::string input;
    int code;
    std::string message;  // after "attn: error: "
};

void check(const Case& bad) {
    std::string command;
    for (const std::string& word : bad.arguments) command += " " + word;
    CAPTURE(command);
    CAPTURE(bad.input);
    const Outcome outcome = run_attn(bad.arguments, bad.input);
    CHECK(outcome.err == "attn: error: " + bad.message + "\n");
    CHECK(outcome.code == bad.code);
    CHECK(outcome.out == "");
}

const std::string matrix = "[[1,2,3],[4,5,6]]";

}  // namespace

TEST_CASE("errors: unknown commands, flags and keys name the nearest known one") {
    for (const Case& bad : std::vector<Case>{
             {{"slef"}, "", 2, "slef: unknown command; the nearest is self"},
             {{"--versoin"},
              "",
              2,
              "--versoin: unknown flag before a command; the nearest is --version"},
             {{"self", "--sede", "3"},
              matrix,
              2,
              "--sede: unknown flag; the nearest known one is --seed"},
             {{"multihead", "--hedas=2"},
              matrix,
              2,
              "--hedas: unknown flag; the nearest known one is --heads"},
             {{"self", "-x"}, matrix, 2, "-x: unknown flag; attn self --help lists the known ones"},
             {{"self", "--no-seed"},
              matrix,
              2,
              "--no-seed: unknown flag; --seed takes a value and has no negation"},
             {{"self", "--heads", "2"},
              matrix,
              2,
              "--heads: no flag of attn self; attn multihead, cross and sdpa have it"},
             {{"self", "--no-causal"},
              matrix,
              2,
              "--no-causal: no flag of attn self; attn causal masks, attn self never does"},
             {{"self", "a.json", "b.json"}, "", 2, "b.json: a second input; expected one"},
             {{"self", "m.json", "--emit", "scores", "mask"},
              "",
              2,
              "mask: a second input; expected one, and a list of arrays without blanks: --emit "
              "scores,mask"},
             {{"self", "--emit", "wieghts"},
              matrix,
              2,
              "--emit wieghts: unknown array \"wieghts\"; the nearest is attention_weights"},
             {{"self", "--emit", "scores,"},
              matrix,
              2,
              "--emit scores,: an empty name; expected names separated by commas, or all"},
             {{"self"},
              R"({"inputs": [[1]], "sede": 3})",
              2,
              "<stdin>:1:19: unknown key \"sede\"; the nearest known one is \"seed\""},
             {{"self"},
              R"({"inputs": [[1]], "d-out": 3})",
              2,
              "<stdin>:1:19: unknown key \"d-out\"; the nearest known one is \"d_out\""},
             {{"self"},
              R"({"inputs": [[1]], "heads": 3})",
              2,
              "<stdin>:1:19: mode self has no \"heads\"; attn multihead, cross and sdpa have it"},
             {{"self"},
              R"({"inputs": [[1]], "output": "x"})",
              2,
              "<stdin>:1:19: \"output\" is not a key of a request; expected --output on the "
              "command "
              "line"}})
        check(bad);
}

TEST_CASE("errors: flag values") {
    for (const Case& bad : std::vector<Case>{
             {{"self", "--d-out", "abc"},
              matrix,
              2,
              "--d-out abc: not an integer; expected an integer from 1 to 2147483648"},
             {{"self", "--d-out", "0"},
              matrix,
              2,
              "--d-out 0: out of range; expected an integer from 1 to 2147483648"},
             {{"self", "--d-out", "-2"},
              matrix,
              2,
              "--d-out -2: out of range; expected an integer from 1 to 2147483648"},
             {{"self", "--d-out", "2.5"},
              matrix,
              2,
              "--d-out 2.5: not an integer; expected an integer from 1 to 2147483648"},
             {{"self", "--seed", "18446744073709551616"},
              matrix,
              2,
              "--seed 18446744073709551616: not a seed; expected an integer from -2^63 to "
              "2^64-1"},
             {{"self", "--dropout", "1.5"},
              matrix,
              2,
              "--dropout 1.5: out of range; expected a probability from 0 to 1"},
             {{"self", "--dropout", "-0.1"},
              matrix,
              2,
              "--dropout -0.1: out of range; expected a probability from 0 to 1"},
             {{"self", "--dropout", "nan"},
              matrix,
              2,
              "--dropout nan: out of range; expected a probability from 0 to 1"},
             {{"self", "--scale", "inf"},
              matrix,
              2,
              "--scale inf: out of range; expected a finite number"},
             {{"self", "--init", "lin"},
              matrix,
              2,
              "--init lin: unknown; expected linear|rand|mha|xavier|none"},
             {{"self", "--format", "xml"},
              matrix,
              2,
              "--format xml: unknown; expected "
              "json|ndjson|csv|tsv|npy|npz|safetensors|torch|table|none"},
             {{"self", "--precision", "21"},
              matrix,
              2,
              "--precision 21: out of range; expected an integer from 0 to 20"},
             {{"self", "--example", "trip"},
              "",
              2,
              "--example trip: unknown; expected journey|pair|sentence"},
             {{"self", "--emit", "scores,weights"},
              matrix,
              2,
              "--emit scores,weights: unknown array \"weights\"; here it is attention_weights"},
             {{"self", "--emit", "b_key"},
              matrix,
              2,
              "--emit b_key: b_key does not exist with these settings; there are inputs, W_query, "
              "W_key, W_value, queries, keys, values, scores, scaled_scores, capped_scores, "
              "biased_scores, mask, masked_scores, weights_before_dropout, dropout_mask, "
              "attention_weights, logsumexp, present_key, present_value, head_outputs, "
              "context_vectors"},
             {{"self"},
              R"({"inputs": [[1]], "dropout": 1.5})",
              2,
              "<stdin>:1:19: dropout 1.5: out of range; expected a probability from 0 to 1"},
             {{"self"},
              R"({"inputs": [[1]], "seed": "x"})",
              2,
              "<stdin>:1:19: seed \"x\": not a seed; expected an integer from -2^63 to 2^64-1"},
             {{"self"},
              R"({"inputs": [[1]], "qkv_bias": 1})",
              2,
              "<stdin>:1:19: qkv_bias 1: not a boolean; expected true or false"},
             {{"self"},
              R"({"inputs": [[1]], "emit": 3})",
              2,
              "<stdin>:1:19: emit 3: not a list of names; expected one name or more"}})
        check(bad);
}

TEST_CASE("errors: settings that do not fit the input or each other") {
    for (const Case& bad : std::vector<Case>{
             {{"multihead", "--heads", "2"},
              matrix,
              2,
              "--heads 2: d_out 3 is not a multiple of 2 (remainder 1); the nearest are 1 and 3"},
             {{"multihead"},
              R"({"inputs": [[1,2,3]], "heads": 2})",
              2,
              "<stdin>:1:23: heads 2: d_out 3 is not a multiple of 2 (remainder 1); the nearest "
              "are 1 and 3"},
             {{"multihead", "--heads", "5", "--d-out", "768"},
              matrix,
              2,
              "--heads 5: d_out 768 is not a multiple of 5 (remainder 3); the nearest are 4 and 6"},
             {{"self", "--token", "2"},
              matrix,
              2,
              "--token 2: there are 2 tokens; expected 0 to 1"},
             {{"self", "--context-length", "1"},
              matrix,
              3,
              "--context-length 1: the input has 2 tokens; expected at most 1"},
             {{"self", "--seed"}, matrix, 2, "--seed: is without its value; expected one after it"},
             {{"self", "--example", "journey", "--text", "a b"},
              "",
              2,
              "--text a b: conflicts with --example journey; expected one input"},
             {{"self", "-", "--example", "journey"},
              matrix,
              2,
              "--example journey: conflicts with <stdin>; expected one input"},
             {{"self", "--example", "journey", "--csv-header", "yes"},
              "",
              2,
              "--csv-header yes: requires INPUT, a file of tokens"},
             {{"self", "--vocab-size", "10"}, matrix, 2, "--vocab-size 10: requires --text"},
             {{"self", "--text", "a b c", "--vocab-size", "2"},
              "",
              2,
              "--vocab-size 2: the text has 3 different words; expected at least as many"},
             {{"self", "--text", " , "}, "", 3, "--text  , : no word in it; expected at least one"},
             {{"self", "--text", "a", "--vocab-size", "3074457345618258603"},
              "",
              2,
              "--vocab-size 3074457345618258603: an embedding of 3074457345618258603 x 3 numbers; "
              "expected at most 9223372036854775807 in all"},
             {{"self", "--dropout-skip", "3"},
              matrix,
              2,
              "--dropout-skip 3: requires --dropout-seed"},
             {{"self", "--init", "none", "--d-out", "2"},
              matrix,
              2,
              "--d-out 2: init none has no projections; expected d_in, 3, or another init"},
             {{"self", "--init", "none", "--qkv-bias"},
              matrix,
              2,
              "--qkv-bias: init none has no projections; expected no bias"},
             {{"self", "--init", "mha"},
              matrix,
              2,
              "--init mha: mha is nn.MultiheadAttention; expected mode multihead, or cross with "
              "heads, and style split"},
             {{"multihead", "--init", "mha", "--d-out", "6"},
              matrix,
              2,
              "--d-out 6: a width of 6, but init mha has one; expected d_in, 3"},
             {{"multihead", "--init", "mha", "--no-out-proj"},
              matrix,
              2,
              "--no-out-proj: init mha always has an output projection; expected true"},
             {{"multihead", "--style", "wrapper", "--out-proj"},
              matrix,
              2,
              "--out-proj: style wrapper has no output projection; expected none, or style split"},
             {{"multihead", "--no-out-proj", "--out-bias"},
              matrix,
              2,
              "--out-bias: there is no output projection; expected no bias of it"},
             {{"causal"},
              R"({"mode": "self", "inputs": [[1]]})",
              2,
              "<stdin>:1:10: the request has mode \"self\"; expected \"causal\", the mode of the "
              "command"},
             {{"self"},
              R"({"inputs": [[1],[2]], "tokens": ["a"]})",
              3,
              "<stdin>:1:33: labels for 1 token; expected 2, one a token"},
             {{"self"},
              R"({"seed": 3})",
              3,
              "<stdin>: a request without \"inputs\"; expected a matrix under that key"},
             {{"sdpa"},
              R"({"query": [[1]], "key": [[1]]})",
              2,
              "--value: is missing; expected a file, or \"value\" in the request"},
             {{"sdpa"},
              R"({"query": [[1,2]], "key": [[1]], "value": [[1]]})",
              3,
              "<stdin>:1:27: shape (1, 1); expected 2 columns as in query (1, 2)"},
             {{"sdpa"},
              R"({"query": [[1]], "key": [[1],[2]], "value": [[1]]})",
              3,
              "<stdin>:1:45: shape (1, 1); expected 2 rows as in key (2, 1)"}})
        check(bad);
}

TEST_CASE("errors: sizes that no machine has") {
    const Outcome wide = run_attn({"self", "--d-out", "2147483648"}, matrix);
    CHECK(wide.code == 3);
    CHECK(wide.out == "");
    CHECK(wide.err.starts_with(
        "attn: error: --d-out 2147483648: a layer of this width needs about "));
    // A prime width has no divisor near: the search for one must not take seconds.
    check(
        {{"multihead", "--heads", "2", "--d-out", "2147483647"},
         matrix,
         2,
         "--heads 2: d_out 2147483647 is not a multiple of 2 (remainder 1); the nearest are 1 and "
         "2147483647"});
}

TEST_CASE("errors: what was given is used or refused") {
    scratch_folder();
    write_text("m.json", matrix);
    std::filesystem::create_symlink("nowhere", "dangling");
    for (const Case& bad : std::vector<Case>{
             {{"--seed", "1", "causal", "m.json"},
              "",
              2,
              "--seed: a flag before a command; expected it behind, as in attn self --seed"},
             {{"self", "m.json", "--qkv-bias=false"},
              "",
              2,
              "--qkv-bias: has a value; expected none"},
             {{"self", ""}, matrix, 2, "INPUT: an empty name; expected a path or -"},
             {{"self", "m.json", "--emit", "all,bogus"},
              "",
              2,
              "--emit all,bogus: unknown array \"bogus\"; expected token_ids, inputs, "
              "normed_inputs, "
              "W_query, b_query, W_key, b_key, W_value, b_value, W_out, b_out, queries, keys, "
              "values, scores, scaled_scores, capped_scores, biased_scores, mask, masked_scores, "
              "masked_weights, weights_before_dropout, dropout_mask, attention_weights, logsumexp, "
              "present_key, present_value, head_outputs, context_vectors, or all"},
             {{"self", "m.json", "--pretty", "--format", "torch"},
              "",
              2,
              "--pretty: requires --format json"},
             {{"sdpa", "m.json"},
              "",
              2,
              "m.json: one matrix, and sdpa takes three; expected --query, --key and --value, or a "
              "request with them (attn self takes one matrix)"},
             {{"sdpa"},
              R"({"inputs": [[1]], "query": [[1]], "key": [[1]], "value": [[1]]})",
              2,
              "<stdin>:1:12: a matrix of inputs; sdpa has no projections, expected query, key and "
              "value"},
             {{"sdpa", "--query", "-", "--key", "-", "--value", "m.json"},
              matrix,
              2,
              "-: standard input named twice; expected it once"},
             {{"sdpa", "--query", "m.json"},
              "",
              2,
              "--key: is missing; expected a file, or \"key\" in the request"},
             {{"self", "gone/key"},
              "",
              4,
              "gone/key: no such file, for there is no folder gone; expected a file that is there"},
             {{"self"},
              R"({"inputs": [[1]], "no_qkv_bias": true})",
              2,
              "<stdin>:1:19: unknown key \"no_qkv_bias\"; expected \"qkv_bias\": false"},
             {{"self"},
              R"({"inputs": [[1]], "id": 1e99})",
              3,
              "<stdin>:1:25: an id that cannot be given back as it is; expected a string or a "
              "64-bit integer"},
             {{"self"},
              R"({"inputs": [[1]], "tokens": []})",
              3,
              "<stdin>:1:29: not a list of strings; expected one a token"},
             {{"self"},
              R"({"schema": "attn.result/1", "context_vectors": [[1]], "x": nonsense})",
              3,
              "<stdin>:1:61: found 'onsense'; expected a JSON value"},
             {{"self", "m.json", "-o", "dangling"},
              "",
              4,
              "dangling: is a broken symbolic link; expected a file to write"},
             {{"self", "m.json", "--emit", "all", "-o", "r.NPY"},
              "",
              2,
              "--emit all: npy holds one array; expected one name, or npz, safetensors or json"}})
        check(bad);
}

TEST_CASE("errors: one line without control characters, however long the input") {
    for (const Case& bad : std::vector<Case>{
             {{"self", "no\nfile\x1b[31m/x"},
              "",
              4,
              "no\\x0afile\\x1b[31m/x: no such file, for there is no folder no\\x0afile\\x1b[31m; "
              "expected a file that is there"},
             {{"self"},
              "{\"a\\nb\": 1}",
              2,
              "<stdin>:1:2: unknown key \"a\\x0ab\"; expected a flag's name with '_' for "
              "'-', or in a request inputs, id, tokens or mode"}})
        check(bad);
    const Outcome huge = run_attn({"self"}, "[[" + std::string(1000000, '9') + "]]");
    CHECK(huge.code == 3);
    CHECK(huge.err.size() < 200);
}

TEST_CASE("errors: a file that would grow too large leaves nothing behind") {
    const Outcome outcome = run_shell(
        "ulimit -f 1; attn self --text \"$(seq 1 300 | tr '\\n' ' ')\" --emit all -o large.json");
    CHECK(outcome.code == 4);
    CHECK(outcome.err ==
          "attn: error: large.json: cannot be written (File too large); expected a writable "
          "location with enough space\n");
    for (const auto& entry : std::filesystem::directory_iterator("."))
        CHECK(entry.path().string().find("large.json") == std::string::npos);
}

TEST_CASE("errors: broken input has its place") {
    for (const Case& bad : std::vector<Case>{
             {{"self"}, "", 3, "<stdin>: is empty; expected a matrix"},
             {{"self"},
              "[[1,2],[3]]",
              3,
              "<stdin>:1:8: 1 element in this list; expected 2 as in the first one"},
             {{"self"}, "[]", 3, "<stdin>:1:1: an empty list; expected at least one element"},
             {{"self"}, "[[]]", 3, "<stdin>:1:2: an empty list; expected at least one element"},
             {{"self"}, "[[1,\"x\"]]", 3, "<stdin>:1:5: a string; expected a number"},
             {{"self"},
              "[[1,1e39]]",
              3,
              "<stdin>:1:5: 1e39 overflows float32; expected at most 3.4028235e38, or dtype "
              "float64"},
             {{"self"},
              "[[1e99999999999999999999]]",
              3,
              "<stdin>:1:3: 1e99999999999999999999 overflows float64; expected at most "
              "1.7976931348623157e308"},
             {{"self"}, "[[NaN]]", 3, "<stdin>:1:3: NaN is not finite; expected a finite number"},
             {{"self"},
              R"({"inputs": [[-Infinity]]})",
              3,
              "<stdin>:1:14: -Infinity is not finite; expected a finite number"},
             {{"self"},
              "[[[[1]]]]",
              3,
              "<stdin>:1:4: an array nested deeper than 3; expected rank 2 to 3"},
             {{"self"}, "[[1,2],", 3, "<stdin>:1:8: the text ends inside '['; expected ']'"},
             {{"self"},
              R"({"inputs": [[1,2]])",
              3,
              "<stdin>:1:19: found the end of the text; expected ',' or '}'"},
             {{"self"},
              R"({"inputs": 3})",
              3,
              "<stdin>:1:12: \"inputs\" is neither an array nor a path; expected a matrix [[...], "
              "...]"},
             {{"self"}, "1,2,3\n4,5,6\n7,8\n", 3, "<stdin>:3: 2 values; expected 3 as in line 1"},
             {{"self"}, "1,2\n3,four\n", 3, "<stdin>:2:3: found 'four'; expected a number"},
             {{"self"},
              R"({"schema": "attn.result/9"})",
              3,
              "<stdin>:1:12: unknown schema; expected \"attn.result/1\""},
             {{"self"},
              R"({"schema": "attn.result/1", "scores": [[1]]})",
              3,
              "<stdin>: a result without context_vectors; expected it among its arrays (--emit)"},
             {{"self", "--input-format", "json"},
              "1,2\n",
              3,
              "<stdin>:1:1: found '1'; expected JSON: a matrix [[...], ...] or a request {...}"},
             {{"self", "--input-format", "csv"},
              "[[1,2]]",
              3,
              "<stdin>:1:1: found '[[1'; expected a number"}})
        check(bad);
}

TEST_CASE("errors: files that cannot be read or written") {
    scratch_folder();
    std::filesystem::create_directory("folder");
    write_text("kept.json", "old");
    for (const Case& bad : std::vector<Case>{
             {{"self", "gone/x.json"},
              "",
              4,
              "gone/x.json: no such file, for there is no folder gone; expected a file that is "
              "there"},
             {{"self", "folder"}, "", 4, "folder: is a folder; expected a file"},
             {{"self", "x.pt"},
              "",
              2,
              "x.pt: is a pickle of PyTorch, which is not read; expected safetensors or npy, by "
              "safetensors.torch.save_file or numpy.save"},
             {{"self", "-o", "folder"}, matrix, 4, "folder: is a folder; expected a file to write"},
             {{"self", "-o", "no/r.json"},
              matrix,
              4,
              "no/r.json: cannot be written (No such file or directory); expected a writable "
              "location with enough space"},
             {{"self", "--emit", "mask,scores", "-o", "r.npy"},
              matrix,
              2,
              "--emit mask,scores: npy holds one array; expected one name, or npz, safetensors or "
              "json"},
             {{"self", "--token", "9", "-o", "kept.json"},
              matrix,
              2,
              "--token 9: there are 2 tokens; expected 0 to 1"}})
        check(bad);
    CHECK(read_text("kept.json") == "old");
}

TEST_CASE("errors: a full disk is an error") {
    if (!std::filesystem::exists("/dev/full")) return;
    const Outcome outcome = run_attn({"self"}, matrix, "/dev/full");
    CHECK(outcome.code == 4);
    CHECK(outcome.err ==
          "attn: error: <stdout>: cannot be written (No space left on device); expected a writable "
          "location with enough space\n");
}
