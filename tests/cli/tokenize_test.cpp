// attn tokenize, through the real binary. Its forms of input and output: same_answers.txt.
#include "tests/support/answers.hpp"
#include "tests/support/gguf_bytes.hpp"

namespace tokenize_test {
namespace {

using namespace attn::test;
using nlohmann::json;

const std::string bert = "tokenizers/bert-uncased";

json tokenized(const Words& words, const std::string& input = "") {
    return answer(Words{"tokenize", data_path(bert)} + words, input);
}

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
    CHECK_FALSE(tokenized({"a"}).contains("type_ids"));
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
}

}  // namespace
}  // namespace tokenize_test
