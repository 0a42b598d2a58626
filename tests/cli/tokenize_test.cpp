// attn tokenize, through the real binary.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_attn.hpp"
#include "tests/support/support.hpp"

namespace tokenize_test {

using namespace attn::test;
using nlohmann::json;

namespace {

const std::string bert = "tokenizers/bert-uncased";

json tokenized(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), {"tokenize", data_path(bert)});
    const Outcome outcome = run_attn(words, input);
    CAPTURE(words);
    CHECK(outcome.err == "");
    REQUIRE(outcome.code == 0);
    return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("tokenize: ids of a word, of standard input, and without special tokens") {
    for (const json& expected : load_data(bert + "/cases.json")) {
        const std::string text = expected["text"];
        CAPTURE(text);
        CHECK(tokenized({}, text)["ids"] == expected["ids"]);
        CHECK(tokenized({}, text)["tokens"] == expected["tokens"]);
        CHECK(tokenized({"--no-special-tokens"}, text)["ids"] == expected["ids_plain"]);
        if (text.find('\0') == std::string::npos && !text.starts_with('-'))
            CHECK(tokenized({text})["ids"] == expected["ids"]);
    }
    CHECK(tokenized({""})["ids"] == json({2, 3}));
    CHECK(tokenized({}, "")["ids"] == json({2, 3}));
    CHECK(run_attn({"tokenize", data_path(bert), "--lines"}, "").out == "");
    CHECK(run_attn({"tokenize", data_path(bert), "--decode"}, "").out == "\n");
    CHECK_FALSE(tokenized({"a"}).contains("type_ids"));
}

TEST_CASE("tokenize: pairs have types") {
    const json pair = tokenized({"the", "--text-pair", "a b"});
    CHECK(pair["schema"] == "attn.tokens/1");
    CHECK(pair["tokens"] == json({"[CLS]", "the", "[SEP]", "a", "b", "[SEP]"}));
    CHECK(pair["type_ids"] == json({0, 0, 0, 1, 1, 1}));
}

TEST_CASE("tokenize: the tokenizer of a GGUF file") {
    const std::string file = data_path("gguf/tiny.gguf");
    const json found = json::parse(run_attn({"tokenize", file, "a b"}).out);
    const json again = json::parse(run_attn({"model", file, "--text", "a b", "--layers", "0"}).out);
    CHECK(found["ids"] == again["config"]["token_ids"]);
    CHECK(found["tokens"] == again["tokens"]);
}

TEST_CASE("tokenize: lines, formats and files") {
    const std::string folder = data_path(bert);
    const Outcome lines = run_attn({"tokenize", folder, "--lines"}, "a\r\n\nb");
    CHECK(lines.code == 0);
    std::istringstream out(lines.out);
    std::vector<std::size_t> sizes;
    for (std::string line; std::getline(out, line);)
        sizes.push_back(json::parse(line)["ids"].size());
    CHECK(sizes == std::vector<std::size_t>{3, 2, 3});
    CHECK(run_attn({"tokenize", folder, "a", "-f", "table"}).out ==
          "token    id\n\"[CLS]\"   2\n\"a\"      35\n\"[SEP]\"   3\n");
    scratch_folder();
    CHECK(run_attn({"tokenize", folder, "a", "-o", "t.json"}).out == "");
    CHECK(json::parse(read_text("t.json")) == tokenized({"a"}));
    CHECK(run_attn({"tokenize", folder, "a", "-o", "t.npz"}).code == 2);
}

TEST_CASE("tokenize: ids become their text, in each spelling of a list") {
    const std::string folder = data_path(bert);
    const json ids = tokenized({"a b the"})["ids"];
    std::string words;
    for (const json& id : ids) words += id.dump() + " ";
    for (const std::string& list :
         {ids.dump(), words, ids.dump().substr(1, ids.dump().size() - 2)}) {
        CAPTURE(list);
        CHECK(run_attn({"tokenize", folder, "--decode", list}).out == "[CLS] a b the [SEP]\n");
        CHECK(run_attn({"tokenize", folder, "--decode", "--no-special-tokens"}, list).out ==
              "a b the\n");
        CHECK(tokenized({"--decode", list, "--format", "json"})["text"] == "[CLS] a b the [SEP]");
    }
    for (const char* bad : {"[1", "1]", "1 x", "-1", "4294967296", "1.5", "[1] 2", "[[1]]"}) {
        CAPTURE(bad);
        CHECK(run_attn({"tokenize", folder, "--decode"}, bad).code == 3);
    }
    CHECK(run_attn({"tokenize", folder, "--decode", ""}).out == "\n");
}

}  // namespace tokenize_test
