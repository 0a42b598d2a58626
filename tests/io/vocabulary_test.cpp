// Vocabularies of tokenizers, against pieces that are spelled here.
#include "io/model/vocabulary.hpp"
#include "tests/support/support.hpp"

namespace vocabulary_test {
namespace {

using namespace attn;
using namespace attn::io;
using nlohmann::json;

std::shared_ptr<const Vocabulary> read(const std::string& name, const std::string& text) {
    test::scratch_folder();
    test::write_text(name, text);
    return read_vocabulary(name, {});
}

/// UTF-8 of a code below U+0800.
std::string utf8(unsigned code) {
    if (code < 0x80) return {static_cast<char>(code)};
    return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

/// As GPT-2's encoder.py counts: printed bytes first, then the others from U+0100 on.
std::vector<std::string> alphabet() {
    std::vector<std::string> characters(256);
    const auto is_printed = [](unsigned b) {
        return (b > 32 && b < 127) || (b > 160 && b < 173) || b > 173;
    };
    unsigned others = 0;
    for (unsigned byte = 0; byte < 256; ++byte)
        characters[byte] = utf8(is_printed(byte) ? byte : 256 + others++);
    return characters;
}

const std::vector<std::string> words{
    "the",  " the", "\xe2\x80\x99s", "\xc3\xa9", "\xe9\x81\x93",     "\xe2\x80",
    "\x80", "\n",   "\t\"quoted\"",  "\\",       "\xf0\x9f\x98\x80", "\xf0\x9f",
    ""};

/// Bytes that are not a character are escaped.
const std::vector<std::string> shown{
    "the",   " the", "\xe2\x80\x99s", "\xc3\xa9", "\xe9\x81\x93",     "\\xe2\\x80",
    "\\x80", "\n",   "\t\"quoted\"",  "\\",       "\xf0\x9f\x98\x80", "\\xf0\\x9f",
    ""};

std::string spelled(const std::string& bytes) {
    static const std::vector<std::string> characters = alphabet();
    std::string text;
    for (char byte : bytes) text += characters[static_cast<unsigned char>(byte)];
    return text;
}

/// Whether the document is byte-level.
json tokenizer(json vocabulary, const json& decoder) {
    return {{"version", "1.0"},
            {"added_tokens",
             {{{"id", 900}, {"content", "<|end of text|>"}, {"special", true}},
              {{"id", 1}, {"content", "added"}}}},
            {"decoder", decoder},
            {"model",
             {{"merges", {{"a \"]}", "b"}}}, {"vocab", std::move(vocabulary)}, {"type", "BPE"}}}};
}

/// Pieces and scores, which nlohmann_json would take for the members of an object.
json list(const std::vector<std::pair<std::string, double>>& pieces) {
    json all = json::array();
    for (const auto& [piece, score] : pieces) all.push_back(json::array({piece, score}));
    return all;
}

TEST_CASE("vocabulary: pieces of byte-level tokenizers are the texts that they spell") {
    json vocabulary = json::object();
    for (std::size_t i = 0; i < words.size(); ++i) vocabulary[spelled(words[i])] = 10 * i + 2;
    for (const json& decoder :
         {json{{"type", "ByteLevel"}},
          json{{"type", "Sequence"}, {"decoders", {{{"type", "ByteLevel"}}, {{"type", "Fuse"}}}}}})
        for (int indent : {-1, 1}) {
            const auto read_back =
                read("tokenizer.json", tokenizer(vocabulary, decoder).dump(indent));
            for (std::size_t i = 0; i < words.size(); ++i)
                CHECK(read_back->piece(10 * i + 2) == shown[i]);
            CHECK(read_back->piece(900) == "<|end of text|>");
            CHECK(read_back->piece(1) == "added");
            CHECK(read_back->piece(3) == "3");
            CHECK(read_back->piece(~std::uint64_t{0}) == "18446744073709551615");
        }
    const auto alone = read("vocab.json", vocabulary.dump());
    for (std::size_t i = 0; i < words.size(); ++i) CHECK(alone->piece(10 * i + 2) == shown[i]);
}

TEST_CASE("vocabulary: pieces of other tokenizers are unchanged") {
    const json metaspace{{"type", "Metaspace"}};
    const json pieces{{"\u2581the", 0}, {"<0xE2>", 5}, {"##ing", 7}, {"\u0120x", 8}};
    const auto object = read("tokenizer.json", tokenizer(pieces, metaspace).dump());
    CHECK(object->piece(0) == "\u2581the");
    CHECK(object->piece(5) == "<0xE2>");
    CHECK(object->piece(7) == "##ing");
    CHECK(object->piece(8) == "\u0120x");
    const json scored = list({{"<unk>", 0}, {"overwritten", -1.5}, {"\u2581of", -2e-3}});
    const auto list = read("tokenizer.json", tokenizer(scored, nullptr).dump(2));
    CHECK(list->piece(0) == "<unk>");
    CHECK(list->piece(1) == "added");
    CHECK(list->piece(2) == "\u2581of");
    for (const char* end : {"\n", "\r\n"}) {
        std::string lines;
        for (const char* piece : {"[PAD]", "the", "##s", "", "\u9053"}) (lines += piece) += end;
        const auto lined = read("vocab.txt", lines);
        CHECK(lined->piece(2) == "##s");
        CHECK(lined->piece(3) == "");
        CHECK(lined->piece(4) == "\u9053");
        CHECK(lined->piece(5) == "5");
    }
}

TEST_CASE("vocabulary: a file that is cut or changed anywhere is read, or refused in one line") {
    const json pieces{{"a\\\"b", 0}, {"\u00e9", 1}, {"c", 12}};
    for (const json& vocabulary : {pieces, list({{"a\\\"b", -1}, {"c", -2.5}})}) {
        const std::string text = tokenizer(vocabulary, {{"type", "ByteLevel"}}).dump();
        std::mt19937 random(7);
        for (std::size_t cut = 1; cut < text.size(); ++cut) {
            for (const std::string& broken :
                 {text.substr(0, cut), text.substr(cut),
                  text.substr(0, cut) + "\"\\[]{},:0x"[random() % 10] + text.substr(cut + 1)}) {
                const std::string error =
                    test::error_of([&] { read("tokenizer.json", broken)->piece(1); });
                CHECK(error.find('\n') == std::string::npos);
            }
            CHECK(test::error_of([&] { read("tokenizer.json", text.substr(0, cut)); }) != "");
        }
    }
    for (const char* text :
         {"[]", "{}", "{\"model\":3}", "{\"model\":{\"vocab\":3}}", "3",
          "{\"model\":{\"vocab\":{\"a\":-1}}}", "{\"model\":{\"vocab\":{\"a\":1.5}}}",
          "{\"model\":{\"vocab\":{\"\\ud800\":1}}}",
          "{\"model\":{\"vocab\":{\"a\":99999999999999999999999}}}"})
        CHECK(test::error_of([&] { read("tokenizer.json", text); }) != "");
}

}  // namespace
}  // namespace vocabulary_test
