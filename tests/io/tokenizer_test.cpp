// Tokenizers, against the library tokenizers: models' own, and random ones with every kind of part.
// What is refused: cli/mistakes.tsv.
#include <ctime>
#include <fstream>

#include "io/tokenizer/tokenizer.hpp"
#include "tests/support/support.hpp"

namespace tokenizer_test {
namespace {

using namespace attn;
using namespace attn::io;
using nlohmann::json;

/// A tokenizer with nothing but a vocabulary of whole words.
json simple_tokenizer() {
    return {
        {"version", "1.0"},
        {"added_tokens", json::array()},
        {"normalizer", nullptr},
        {"pre_tokenizer", nullptr},
        {"post_processor", nullptr},
        {"decoder", nullptr},
        {"model",
         {{"type", "WordLevel"}, {"vocab", {{"a", 0}, {"b", 1}, {"?", 2}}}, {"unk_token", "?"}}}};
}

json bpe_of(const json& vocab, const json& merges) {
    json tokenizer = simple_tokenizer();
    tokenizer["model"] = {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}};
    return tokenizer;
}

Tokenizer made(const json& tokenizer) {
    return Tokenizer::from_json("t.json", tokenizer.dump());
}

/// Of the processor, which other programs do not lengthen.
double seconds_of(const Tokenizer& tokenizer, const std::string& text) {
    const std::clock_t begin = std::clock();
    tokenizer.encode(text);
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// `count` equal steps in one list, or each step with the next ones in a list of its own.
json sequence_of(const json& step, int count, const char* list, bool nested) {
    if (nested && count > 1)
        return {{"type", "Sequence"},
                {list, json::array({step, sequence_of(step, count - 1, list, true)})}};
    return {{"type", "Sequence"}, {list, std::vector<json>(static_cast<std::size_t>(count), step)}};
}

TEST_CASE("tokenizer: models' tokenizers give the library's ids") {
    const char* const golden = std::getenv("ATTN_GOLDEN");  // a folder with more of them
    namespace fs = std::filesystem;
    for (const std::string& root : {test::data_path("tokenizers"),
                                    golden == nullptr ? "" : golden + std::string("/tokenizers")})
        for (const auto& entry :
             root.empty() ? fs::directory_iterator() : fs::directory_iterator(root)) {
            if (!fs::exists(entry.path() / "cases.json")) continue;
            const std::string folder = entry.path().string();
            CAPTURE(folder);
            const Tokenizer tokenizer = read_tokenizer(folder);
            for (const json& expected : json::parse(test::read_text(folder + "/cases.json"))) {
                const std::string text = expected["text"];
                CAPTURE(text);
                const TokenizedText found = tokenizer.encode(text);
                CHECK(json(found.ids) == expected["ids"]);
                CHECK(json(found.pieces) == expected["tokens"]);
                CHECK(json(tokenizer.encode(text, false).ids) == expected["ids_plain"]);
            }
        }
}

TEST_CASE("tokenizer: random tokenizers give the library's ids, pieces, types and texts") {
    std::ifstream lines(test::data_path("tokenizers/random.ndjson"));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
        const json record = json::parse(line);
        const Tokenizer tokenizer = made(record["tokenizer"]);
        CAPTURE(count);
        for (const json& expected : record["cases"]) {
            const std::string text = expected["text"];
            CAPTURE(text);
            const bool special = expected["special"];
            const TokenizedText found =
                expected["pair"].is_null()
                    ? tokenizer.encode(text, special)
                    : tokenizer.encode_pair(text, expected["pair"].get<std::string>(), special);
            CHECK(json(found.ids) == expected["ids"]);
            CHECK(json(found.pieces) == expected["tokens"]);
            CHECK(json(found.type_ids) == expected["type_ids"]);
            if (expected.contains("decoded"))
                CHECK(tokenizer.decode(found.ids, false) == expected["decoded"]);
        }
        ++count;
    }
    CHECK(count > 30);
}

TEST_CASE("tokenizer: expressions that are invalid or take too long are errors") {
    const auto error = [](const std::string& expression, const std::string& text) {
        json tokenizer = simple_tokenizer();
        tokenizer["pre_tokenizer"] = {{"type", "Split"},
                                      {"pattern", {{"Regex", expression}}},
                                      {"behavior", "Isolated"},
                                      {"invert", false}};
        return test::error_of([&] { made(tokenizer).encode(text); });
    };
    const std::string place = "t.json: /pre_tokenizer/pattern/Regex: ";
    for (const char* bad :
         {"(", ")", "[a", "a{99999}{99999}", "\\p{Nonsense}", "(?<n", "\\", "*", "[b-a]", "(?'x')",
          "\\xff", "\\u12", "(*ACCEPT)", "\\K", "[[:nope:]]"}) {
        CAPTURE(bad);
        CHECK(error(bad, "a").find(place) == 0);
    }
    CHECK(error("(a+)+$", std::string(60, 'a') + "b").find(place + "takes too long") == 0);
    CHECK(error("(a|aa)+$", std::string(200, 'a') + "b").find(place + "takes too long") == 0);
    std::string deep;
    for (int i = 0; i < 5000; ++i) deep += "(";
    CHECK(error(deep, "a").find(place) == 0);
}

TEST_CASE("tokenizer: a damaged table of replacements is an error or changes nothing else") {
    const json whole = test::load_data("tokenizers/t5/tokenizer.json");
    const std::string map = whole["normalizer"]["normalizers"][0]["precompiled_charsmap"];
    for (const std::size_t size : {0u, 1u, 4u, 8u, 100u, 5000u, 200000u}) {
        json tokenizer = simple_tokenizer();
        tokenizer["normalizer"] = {{"type", "Precompiled"},
                                   {"precompiled_charsmap", map.substr(0, size)}};
        CAPTURE(size);
        CHECK(
            test::contains(test::error_of([&] { made(tokenizer); }), "precompiled_charsmap: has"));
    }
    for (std::size_t at = 16; at < 3000; at += 21 * test::one_in) {
        std::string damaged = map;
        damaged[at] = damaged[at] == 'z' ? 'A' : 'z';
        json tokenizer = simple_tokenizer();
        tokenizer["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", damaged}};
        test::error_of([&] { made(tokenizer).encode("a\u00bd \u3000\ufb01 \u0410\u0301"); });
    }
}

TEST_CASE("tokenizer: a word of a megabyte takes about a second") {
    const double most = 20;  // on a slow machine, with sanitizers
    const std::string word(std::size_t{1} << 20, 'a');
    for (const char* name : {"bert-uncased", "gpt2", "llama2", "t5"})
        CHECK(seconds_of(read_tokenizer(test::data_path("tokenizers/" + std::string(name))), word) <
              most);
    json vocab, merges = json::array();
    std::string piece = "a";
    vocab[piece] = 0;
    for (int i = 1; i < 12; ++i) {  // merges of merges
        merges.push_back(json::array({piece, piece}));
        piece += piece;
        vocab[piece] = i;
    }
    const Tokenizer tokenizer = made(bpe_of(vocab, merges));
    CHECK(seconds_of(tokenizer, word) < most);
    CHECK(tokenizer.encode(word).ids == std::vector<std::uint32_t>(512, 11));
}

TEST_CASE("tokenizer: steps may make 1 MiB of a text, and 32 bytes for each of its own") {
    const json twice{{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
    const json bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
    const json text{{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    const json pair{{"type", "TemplateProcessing"},
                    {"single", json::array({text, text})},
                    {"pair", json::array({text, text})},
                    {"special_tokens", json::object()}};
    struct Kind {
        const char *part, *list;
        json step;
        std::string text;
        bool decodes = false;
    };
    // A text of one letter is doubled by each step.
    const Kind kinds[]{{"normalizer", "normalizers", twice, "a"},
                       {"normalizer", "normalizers", bytes, "\u00e9"},
                       {"pre_tokenizer", "pretokenizers", bytes, "\u00e9"},
                       {"post_processor", "processors", pair, "a"},
                       {"decoder", "decoders", twice, "a", true}};
    test::Sample sample;
    for (const Kind& kind : kinds)
        for (const bool nested : {false, true})
            for (const int steps : {1, 20, 21, nested ? 28 : 40}) {
                if (!sample.takes()) continue;
                CAPTURE(kind.part);
                CAPTURE(kind.text);
                CAPTURE(nested);
                CAPTURE(steps);
                const std::size_t size = kind.text.size() << steps;
                const std::size_t most = (std::size_t{1} << 20) + 32 * kind.text.size();
                json whole = bpe_of({{"a", 0}}, json::array());
                whole[kind.part] = sequence_of(kind.step, steps, kind.list, nested);
                const Tokenizer tokenizer = made(whole);
                std::size_t found = size;
                const std::string error = test::error_of([&] {
                    const std::uint32_t id = 0;
                    if (kind.decodes)
                        found = tokenizer.decode({&id, 1}, false).size();
                    else if (const auto ids = tokenizer.encode(kind.text).ids; kind.text == "a")
                        found = ids.size();
                });
                CHECK(found == size);
                CHECK(error == (size <= most ? ""
                                             : "text: the steps of the tokenizer make more than " +
                                                   std::to_string(most) +
                                                   " bytes or tokens of it; expected at most "
                                                   "1048576, and 32 more for each"));
            }
    // One step that makes as much, and texts whose parts only together make too much.
    json whole = bpe_of({{"a", 0}}, json::array());
    whole["normalizer"] = twice;
    whole["normalizer"]["content"] = std::string(95000, 'a');
    CHECK(made(whole).encode("aaaaaaaaaaa").ids.size() == 1045000);
    CHECK_FALSE(test::error_of([&] { made(whole).encode(std::string(12, 'a')); }).empty());
    whole["added_tokens"] = json::array({{{"id", 1}, {"content", "-"}, {"normalized", false}}});
    CHECK_FALSE(test::error_of([&] { made(whole).encode("aaaaaa-aaaaaa"); }).empty());
}

TEST_CASE("tokenizer: a folder of Hugging Face's cache leads to its snapshot") {
    test::scratch_folder();
    namespace fs = std::filesystem;
    fs::create_directories("models--a--b/snapshots/abc");
    fs::create_directories("models--a--b/refs");
    test::write_text("models--a--b/refs/main", "abc");
    test::write_text("models--a--b/snapshots/abc/tokenizer.json", simple_tokenizer().dump());
    CHECK(tokenizer_file("models--a--b") == "models--a--b/snapshots/abc/tokenizer.json");
    CHECK_FALSE(read_tokenizer("models--a--b").piece(0).empty());
}

}  // namespace
}  // namespace tokenizer_test
