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

TEST_CASE("tokenize: the first tokens of one text and of two, as tokenizers 0.23.3 keeps them") {
    const std::string text = "one two three four five six";
    const json all = tokenized({text})["ids"];
    for (std::size_t n = 2; n < all.size() + 2; ++n) {
        json kept = all;
        if (n < all.size()) {
            kept = json(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n) - 1);
            kept.push_back(all.back());
        }
        const Words ask{"tokenize", data_path(bert), text, "--truncate", std::to_string(n)};
        const Outcome outcome = run_attn(ask);
        CHECK(json::parse(outcome.out)["ids"] == kept);
        CHECK(outcome.err == (n < all.size()
                                  ? "attn: note: text: " + std::to_string(all.size() - n) + " of " +
                                        std::to_string(all.size()) +
                                        " tokens are left out, at the end of the text\n"
                                  : ""));
    }
}

TEST_CASE("tokenize: a model's and a layer's text is that of a file, and its first tokens") {
    write_text("marked.txt", "\xef\xbb\xbfthe head");
    CHECK(answer({"tokenize", data_path("models/manual"), "--text-file", "marked.txt"}) ==
          answer({"tokenize", data_path("models/manual"), "the head"}));
    write_text("text.txt", "the head reads a file, the head reads a");
    const Words model{"model", data_path("models/manual"), "--emit", "attention_weights"};
    for (const Words& way : {Words{"--text-file", "text.txt"}, Words{"--text-file", "-"}}) {
        const json whole = answer(model + way, read_text("text.txt"));
        CHECK(whole == answer(model + Words{"--text", read_text("text.txt")}));
        const Outcome cut = run_attn(model + way + Words{"--truncate", "4"}, read_text("text.txt"));
        CHECK(contains(cut.err, "9 of 13 tokens are left out"));
        CHECK(json::parse(cut.out)["num_truncated_tokens"] == 9);
        const json ids = whole["config"]["token_ids"];
        CHECK(json::parse(cut.out)["config"]["token_ids"] == json(ids.begin(), ids.begin() + 4));
        const Words layer{"causal", "--embed-dim", "4"};
        const json words = answer(layer + way, read_text("text.txt"));
        CHECK(words == answer(layer + Words{"--text", read_text("text.txt")}));
        const Outcome first =
            run_attn(layer + way + Words{"--truncate", "2"}, read_text("text.txt"));
        CHECK(json::parse(first.out)["tokens"] == json({"the", "head"}));
        CHECK(json::parse(first.out)["num_truncated_tokens"] > 0);
        write_text("saved.json", first.out);
        CHECK(result_of({"causal", "--config", "saved.json"}) == json::parse(first.out));
    }
}

}  // namespace
}  // namespace tokenize_test
