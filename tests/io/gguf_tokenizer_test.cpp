// Tokenizers in GGUF files, against the ids of llama.cpp and those of the tokenizer.json.
#include "io/tokenizer/tokenizer.hpp"
#include "tests/support/gguf_bytes.hpp"

namespace gguf_tokenizer_test {
namespace {

using namespace attn;
using namespace attn::io;
using nlohmann::json;

/// That of a GGUF file with this metadata.
Tokenizer of_file(const json& metadata) {
    test::GgufBytes bytes(0, metadata.size());
    const auto put = [&](const json& value, bool with_type) -> std::uint64_t {
        const std::uint64_t type = value.is_string()         ? 8
                                   : value.is_boolean()      ? 7
                                   : value.is_number_float() ? 12
                                                             : 4;
        if (with_type) return type;
        if (type == 8) bytes.string(value);
        if (type == 7) bytes.number(value.get<bool>() ? 1 : 0, 1);
        if (type == 12) bytes.number(std::bit_cast<std::uint64_t>(value.get<double>()), 8);
        if (type == 4) bytes.number(value.get<std::uint32_t>(), 4);
        return type;
    };
    for (const auto& [key, value] : metadata.items()) {
        bytes.key(key, value.is_array() ? 9 : put(value, true));
        if (!value.is_array()) {
            put(value, false);
            continue;
        }
        bytes.number(put(value[0], true), 4).number(value.size(), 8);
        for (const json& item : value) put(item, false);
    }
    test::scratch_folder();
    test::write_text("m.gguf", bytes.text());
    return read_tokenizer("m.gguf");
}

/// The metadata of a GGUF file with the vocabulary of a BERT, as llama.cpp's converter writes it.
json bert_metadata(const json& tokenizer) {
    const json& vocabulary = tokenizer["model"]["vocab"];
    std::vector<std::string> pieces(vocabulary.size());
    for (const auto& [piece, id] : vocabulary.items())
        pieces[id.get<std::size_t>()] =
            piece.starts_with("##") ? piece.substr(2) : "\u2581" + piece;
    json types = std::vector<unsigned>(pieces.size(), 1);
    for (const json& added : tokenizer["added_tokens"]) {
        types[added["id"].get<std::size_t>()] = 3U;
        pieces[added["id"].get<std::size_t>()] = added["content"];
    }
    return {{"tokenizer.ggml.model", "bert"},
            {"tokenizer.ggml.tokens", pieces},
            {"tokenizer.ggml.token_type", types},
            {"tokenizer.ggml.cls_token_id", vocabulary["[CLS]"]},
            {"tokenizer.ggml.seperator_token_id", vocabulary["[SEP]"]},
            {"tokenizer.ggml.unknown_token_id", vocabulary["[UNK]"]}};
}

/// The same of a T5, whose published tokenizer.json differs from that of newer versions of the
/// library: `tokenizer` becomes it.
json t5_metadata(json& tokenizer, bool removes_white_space) {
    json pieces = json::array(), scores = json::array(), types = json::array();
    for (const json& entry : tokenizer["model"]["vocab"]) {
        pieces.push_back(entry[0]);
        scores.push_back(entry[1].get<double>());
        types.push_back(1U);
    }
    for (const json& added : tokenizer["added_tokens"]) types[added["id"].get<std::size_t>()] = 3U;
    tokenizer["normalizer"] = json(tokenizer["normalizer"]["normalizers"][0]);
    json words = json::array({tokenizer["pre_tokenizer"]});
    if (removes_white_space) words.insert(words.begin(), json{{"type", "WhitespaceSplit"}});
    tokenizer["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", words}};
    const std::string map =
        test::from_base64(tokenizer["normalizer"]["precompiled_charsmap"].get<std::string>());
    return {
        {"tokenizer.ggml.model", "t5"},
        {"tokenizer.ggml.tokens", pieces},
        {"tokenizer.ggml.scores", scores},
        {"tokenizer.ggml.token_type", types},
        {"tokenizer.ggml.remove_extra_whitespaces", removes_white_space},
        {"tokenizer.ggml.eos_token_id", 1U},
        {"tokenizer.ggml.unknown_token_id", 2U},
        {"tokenizer.ggml.precompiled_charsmap", std::vector<std::uint8_t>(map.begin(), map.end())}};
}

/// Any value of the metadata is replaced by one of another kind: an error, or without effect.
void damage(const json& metadata, test::Sample& sample) {
    for (const auto& [key, value] : metadata.items())
        for (const json& other : {json(), json("x"), json(-1), json::array({1}), json::object()}) {
            if (!sample.takes()) continue;
            json damaged = metadata;
            damaged[key] = other;
            test::error_of([&] { Tokenizer::from_gguf("m.gguf", damaged).encode("a b"); });
        }
}

TEST_CASE("tokenizer: those in GGUF files give llama.cpp's ids, and the texts again") {
    test::Sample sample;
    for (const char* name : {"llama", "qwen2"}) {
        CAPTURE(name);
        const json record = test::load_data("tokenizers/gguf/" + std::string(name) + ".json");
        const Tokenizer tokenizer = of_file(record["metadata"]);
        for (const json& expected : record["texts"]) {
            const std::string text = expected["text"];
            CAPTURE(text);
            const TokenizedText found = tokenizer.encode(text, false);
            CHECK(json(found.ids) == expected["ids"]);
            CHECK(tokenizer.decode(found.ids, false) == text);
        }
        const bool begins = record["metadata"]["tokenizer.ggml.add_bos_token"];
        CHECK(tokenizer.encode("", true).ids.size() == (begins ? 1 : 0));
        damage(record["metadata"], sample);
    }
    json metadata = test::load_data("tokenizers/gguf/qwen2.json")["metadata"];
    const std::pair<const char*, const char*> wrong[]{
        {"tokenizer.ggml.pre",
         "m.gguf: tokenizer.ggml.pre: \"rwkv\" is not supported; expected one "
         "of default, llama3,"},
        {"tokenizer.ggml.model",
         "m.gguf: tokenizer.ggml.model: \"rwkv\" is not supported; expected "
         "llama, gpt2, bert or t5"}};
    for (const auto& [key, error] : wrong) {
        metadata[key] = "rwkv";
        CHECK(test::error_of([&] { Tokenizer::from_gguf("m.gguf", metadata); }).starts_with(error));
    }
}

TEST_CASE("tokenizer: those of BERT and T5 in GGUF files are those of tokenizer.json") {
    test::Sample sample;
    for (const std::string name : {"bert-uncased", "t5", "t5 as it is"}) {
        CAPTURE(name);
        const bool is_bert = name == "bert-uncased";
        const std::string folder = "tokenizers/" + (is_bert ? name : std::string("t5"));
        json published = test::load_data(folder + "/tokenizer.json");
        const json metadata =
            is_bert ? bert_metadata(published) : t5_metadata(published, name == "t5");
        const Tokenizer expected = Tokenizer::from_json("t.json", published.dump()),
                        found = of_file(metadata);
        const json cases = test::load_data(folder + "/cases.json");
        std::string before;
        for (const json& c : cases) {
            const std::string text = c["text"];
            CAPTURE(text);
            const TokenizedText one = found.encode(text), pair = found.encode_pair(before, text);
            CHECK(one.ids == expected.encode(text).ids);
            CHECK(one.pieces == expected.encode(text).pieces);
            if (is_bert) CHECK(json(one.ids) == c["ids"]);
            CHECK(found.encode(text, false).ids == expected.encode(text, false).ids);
            CHECK(pair.ids == expected.encode_pair(before, text).ids);
            CHECK(pair.type_ids == expected.encode_pair(before, text).type_ids);
            if (is_bert) CHECK(found.decode(one.ids, true) == expected.decode(one.ids, true));
            before = text;
        }
        damage(metadata, sample);
    }
    json cased = bert_metadata(test::load_data("tokenizers/bert-uncased/tokenizer.json"));
    CHECK(Tokenizer::from_gguf("m", cased).encode("Hello").ids ==
          Tokenizer::from_gguf("m", cased).encode("hello").ids);
    cased["tokenizer.ggml.tokens"].back() = "\u2581Hello";
    CHECK(Tokenizer::from_gguf("m", cased).encode("Hello", false).ids.size() == 1);
}

}  // namespace
}  // namespace gguf_tokenizer_test
