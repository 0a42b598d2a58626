// attn tokenize, through the real binary.
#include "tests/support/answers.hpp"
#include "tests/support/gguf_bytes.hpp"

namespace tokenize_test {

using namespace attn::test;
using nlohmann::json;

namespace {

const std::string bert = "tokenizers/bert-uncased";

json tokenized(const Words& words, const std::string& input = "") {
    return answer(Words{"tokenize", data_path(bert)} + words, input);
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
    GgufBytes bytes(0, 4);
    bytes.word("tokenizer.ggml.model", "gpt2").word("tokenizer.ggml.pre", "gpt-2");
    bytes.key("tokenizer.ggml.tokens", 9).number(8, 4).number(4, 8);
    for (const char* piece : {"a", "b", "ab", "\u0120"}) bytes.string(piece);
    bytes.key("tokenizer.ggml.merges", 9).number(8, 4).number(1, 8).string("a b");
    write_text("m.gguf", bytes.text());
    CHECK(json::parse(run_attn({"tokenize", "m.gguf", "ab a"}).out)["ids"] == json({2, 3, 0}));
    CHECK(run_attn({"tokenize", "m.gguf", "--decode", "2,3,0"}).out == "ab a\n");
    CHECK(run_attn({"tokenize", data_path("gguf/tiny.gguf"), "a"})
              .err.find("tiny.gguf: has no member \"tokenizer.ggml.merges\"; expected it") !=
          std::string::npos);
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
