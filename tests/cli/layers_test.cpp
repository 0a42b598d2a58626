// attn plot of several results, and of arrays with an axis of layers.
#include <doctest/doctest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/support/answers.hpp"
#include "tests/support/contains.hpp"
#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"
#include "tests/support/words.hpp"

namespace layers_test {

using namespace attn::test;
using nlohmann::json;

namespace {

/// Three results of the same question with different seeds, in each format.
void write_layers(const Words& more = {}) {
    scratch_folder();
    for (const char* seed : {"1", "2", "3"})
        for (const char* suffix : {".json", ".npz", ".safetensors"}) {
            const Words words{
                "multihead", data_path("journey.csv"),           "--heads", "3", "--seed", seed,
                "-o",        std::string("seed") + seed + suffix};
            REQUIRE(run_attn(words + more).code == 0);
        }
}

const Words tokens{"Your", "journey", "starts", "with", "one", "step"};

}  // namespace

TEST_CASE("layers: each cell is that of its own result, in every format and as lines of a batch") {
    for (const Words& more : std::vector<Words>{{}, {"--emit", "all"}, {"--no-causal"}}) {
        write_layers(more);
        const Words scale{"--color-scale", "fixed"};
        Words alone;
        for (const char* seed : {"1", "2", "3"}) {
            const Outcome one =
                run_attn({"plot", std::string("seed") + seed + ".json", scale[0], scale[1]});
            REQUIRE(one.code == 0);
            const Words cells = rows_of(one.out, tokens);
            REQUIRE(!cells.empty());
            alone = alone + cells;
        }
        for (const char* suffix : {".json", ".npz", ".safetensors"}) {
            Words words{"plot"};
            for (const char* seed : {"1", "2", "3"})
                words.push_back(std::string("seed") + seed + suffix);
            words = words + scale;
            const Outcome all = run_attn(words);
            CHECK(all.err == "");
            CHECK(rows_of(all.out, tokens) == alone);
            CHECK(contains(all.out, std::string("seed2") + suffix + ", head 1"));
            for (const char* picture : {"l.svg", "l.png", "l.html"}) {
                CHECK(run_attn(with(words, {"-o", picture})).err == "");
                CHECK(std::filesystem::file_size(picture) > 1000);
            }
        }
        std::string lines;
        for (const char* seed : {"1", "2", "3"})
            lines += json::parse(read_text(std::string("seed") + seed + ".json")).dump() + "\n";
        write_text("all.ndjson", lines);
        const Outcome all = run_attn({"plot", "all.ndjson", scale[0], scale[1]});
        CHECK(all.err == "");
        CHECK(rows_of(all.out, tokens) == alone);
        CHECK(contains(all.out, "all.ndjson:3, head 1"));
        CHECK(rows_of(run_attn({"plot", "-", scale[0], scale[1]}, lines).out, tokens) == alone);
    }
}

TEST_CASE("layers: they are called by their number, their id or their file") {
    write_layers();
    const json result = json::parse(read_text("seed1.json"));
    const auto drawn = [&](const json& a, const json& b) {
        json first = result, second = result;
        first.update(a, true);
        second.update(b, true);
        return run_attn({"plot"}, first.dump() + "\n" + second.dump() + "\n").out;
    };
    const json layer3{{"config", {{"layer", 3}}}}, layer7{{"config", {{"layer", 7}}}};
    CHECK(contains(drawn(layer3, layer7), "layer 7, head 2"));
    CHECK(contains(drawn({{"id", "x"}}, {{"id", "y"}}), "y, head 2"));
    CHECK(contains(drawn({{"id", "x"}}, {{"id", "x"}}), "<stdin>:2, head 2"));
    CHECK(contains(drawn(layer3, layer3), "<stdin>:2, head 2"));
}

TEST_CASE("layers: arrays of other programs are drawn by the axes that are named") {
    scratch_folder();
    json five = json::array();
    for (int layer = 0; layer < 2; ++layer) {
        json heads = json::array();
        for (int head = 0; head < 3; ++head)
            heads.push_back({{0.1 * layer, 0.1 * head}, {0.5, 0.25}});
        five.push_back(json::array({heads}));
    }
    write_text("five.json", five.dump());
    const Outcome all = run_attn({"plot", "five.json"});
    CHECK(contains(all.out, "layer 1, head 2"));
    CHECK(contains(all.err, "layer 2, batch 1, heads 3, row 2, column 2"));
    json four = json::array();
    for (const json& layer : five) four.push_back(layer[0]);
    write_text("four.json", json{{"attentions", four}, {"tokens", {"ab", "cd"}}}.dump());
    const Outcome named =
        run_attn({"plot", "four.json:attentions", "--axes", "layer,head,q_len,kv_len"});
    CHECK(named.err == "");
    CHECK(contains(named.out, "layer 1, head 2"));
    CHECK(contains(named.out, "ab"));
    CHECK(contains(run_attn({"plot", "four.json:attentions"}).out, "batch 1, head 2"));
    CHECK(run_attn({"plot", "four.json:attentions", "--axes", "head,query,key"}).err ==
          "attn: error: --axes head,query,key: 3 axes; expected as many as an array has, and "
          "attentions has 4\n");
    write_text("a.json", four[0].dump());
    write_text("b.json", four[1].dump());
    const Outcome files = run_attn({"plot", "a.json", "b.json", "--axes", "head,query,key"});
    CHECK(files.err == "");
    CHECK(contains(files.out, "b.json, head 2"));
    for (const auto& [list, part] : std::vector<std::pair<const char*, const char*>>{
             {"layer,head,quer,key", "unknown axis \"quer\""},
             {"head,heads,query,key", "heads appears twice"},
             {"head", "1 names; expected 2 to 5"},
             {"a,,b", "unknown axis"}}) {
        check_error({"plot", "four.json:attentions", "--axes", list}, "", 2, part);
    }
}

TEST_CASE("layers: results that differ are an error that names both") {
    write_layers();
    const auto error = [](const Words& words) {
        const Outcome outcome = run_attn(words);
        CHECK(outcome.out == "");
        CHECK(outcome.code == 3);
        return outcome.err;
    };
    const std::vector<std::pair<Words, std::string>> others{
        {{"--heads", "1"},
         "has attention_weights (1, 6, 6), and seed1.json has (3, 6, 6); expected layers of one "
         "shape"},
        {{"--heads", "3", "--tokens", "Your,journey,starts,here,one,step"},
         "has label \"here\" for token 3, and seed1.json has \"with\"; expected layers of the same "
         "words"},
        {{"--heads", "3", "--emit", "context_vectors"},
         "has no attention_weights, and seed1.json has one; expected the same arrays, as by the "
         "same --emit"},
        {{"--heads", "3", "--dtype", "float64"},
         "has attention_weights of float64, and seed1.json has float32; expected layers of one "
         "type"}};
    for (const auto& other : others) {
        run_attn(Words{"multihead", data_path("journey.csv"), "-o", "b.json"} + other.first);
        CHECK(error({"plot", "seed1.json", "b.json"}) ==
              "attn: error: b.json: " + other.second + "\n");
    }
    write_text("failed.ndjson", R"({"id":1,"error":{"kind":"input","where":"x","message":"y"}})"
                                "\n{}\n");
    CHECK(contains(error({"plot", "failed.ndjson"}), "failed.ndjson:1: a record that failed"));
    check_error({"plot", "-", "-"}, "", 2, "standard input named twice");
}

TEST_CASE("layers: selected arrays of other programs, of files that hold one, and what differs") {
    scratch_folder();
    write_text("a.json", R"({"x": [[1, 0], [0.5, 0.5]], "y": [[0.25, 0.75], [0, 1]],
                            "wide": [[1, 0, 0]]})");
    write_text("b.json", R"({"x": [[0, 1], [1, 0]]})");
    write_text("c.csv", "0.1,0.9\n0.2,0.8\n");
    const auto drawn = [](const Words& words) {
        const Outcome outcome = run_attn(Words{"plot"} + words + Words{"--axes", "query,key"});
        CHECK(outcome.err == "");
        CHECK(outcome.code == 0);
        return outcome.out;
    };
    CHECK(contains(drawn({"a.json:x", "a.json:y"}), "x, y (2, 2, 2)"));
    CHECK(contains(drawn({"a.json:x", "b.json:x"}), "b.json"));
    CHECK(contains(drawn({"a.json:y", "b.json:x"}), "y, x (2, 2, 2)"));
    CHECK(contains(drawn({"a.json:x", "b.json:x", "a.json:y"}), "b.json:x"));
    CHECK(contains(drawn({"a.json:x", "c.csv"}), "x, array (2, 2, 2)"));
    CHECK(contains(drawn({"c.csv", "a.json:y"}), "array, y (2, 2, 2)"));
    CHECK(contains(drawn({"a.json:x", "a.json:x"}), "layer 1"));
    CHECK(contains(drawn({"a.json:x", "a.json:y", "b.json:x", "a.json:y"}), "x, ..., y (4, 2, 2)"));
    const auto error = [](const Words& words) {
        const Outcome outcome = run_attn(Words{"plot"} + words);
        CHECK(outcome.out == "");
        CHECK(outcome.code == 3);
        return outcome.err;
    };
    CHECK(contains(error({"a.json:x", "a.json:wide"}),
                   "a.json: has wide (1, 3), and x (2, 2); expected layers of one shape"));
    CHECK(contains(error({"b.json:x", "a.json:wide"}),
                   "a.json: has wide (1, 3), and b.json has (2, 2); expected layers of one shape"));
    CHECK(contains(error({"a.json:x", "b.json:X"}), "b.json"));
    CHECK(contains(error({"a.json:x", "b.json:y"}), "b.json"));
}

}  // namespace layers_test
