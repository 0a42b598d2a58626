// GGUF files: tensors and metadata as they were written. Damaged files: hostile/gguf.py.
#include "io/model/gguf_config.hpp"
#include "io/read/input_file.hpp"
#include "tests/support/gguf_bytes.hpp"

namespace gguf_test {
namespace {

using namespace attn;
using namespace attn::io;
using namespace attn::test;
using nlohmann::json;

ArrayFile open_text(const std::string& text) {
    return open_gguf(Bytes::of("x.gguf", text));
}

/// Two tensors side by side and a key.
GgufBytes small_file() {
    return GgufBytes(2, 1)
        .word("general.architecture", "none")
        .tensor("a", {3, 2}, 0, 0)
        .tensor("b", {2}, 0, 32)
        .floats({1, 2, 3, 4, 5, 6, 0, 0, 7, 8});
}

TEST_CASE("gguf: tensors have their values, rows outermost, and metadata their types") {
    const ArrayFile file = *open_input_file(data_path("gguf/tiny.gguf")).arrays;
    const json& metadata = *file.gguf_metadata;
    CHECK(metadata["general.architecture"] == "llama");
    CHECK(metadata["general.alignment"] == 64);
    CHECK(metadata["test.int8"] == -3);
    CHECK(metadata["test.uint16"] == 65535);
    CHECK(metadata["test.int64"] == -1099511627776);
    CHECK(metadata["test.float64"] == 0.1);
    CHECK(metadata["llama.attention.layer_norm_rms_epsilon"] == 1e-5);
    CHECK(metadata["test.bool"] == true);
    CHECK(metadata["test.nested"] == json::parse("[[1,2],[3],[4,5,6]]"));
    CHECK(metadata["tokenizer.ggml.tokens"].size() == 16);
    CHECK(file.arrays.size() == 12);
    CHECK(file.find("blk.0.ffn_gate.weight")->shape == std::vector<std::size_t>{64, 32});
    CHECK(file.find("blk.0.ffn_gate.weight")->type_name == "Q4_0");
    const ArrayFile plain = open_text(small_file().text());
    CHECK(plain.arrays[0].shape == std::vector<std::size_t>{2, 3});
    CHECK(floats_of(plain.arrays[0]) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(floats_of(plain.arrays[1]) == std::vector<float>{7, 8});
}

TEST_CASE("gguf: all value types, also in arrays") {
    GgufBytes bytes(0, 13);
    const std::size_t sizes[13]{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    for (std::uint64_t type = 0; type < 13; ++type) {
        if (sizes[type] == 0) continue;
        bytes.key("k" + std::to_string(type), 9).number(type, 4).number(2, 8);
        for (std::uint64_t value : {std::uint64_t{1}, std::uint64_t{0}})
            bytes.number(value, sizes[type]);
    }
    bytes.key("words", 9).number(8, 4).number(2, 8).string("a").string("\xff");
    bytes.key("lists", 9).number(9, 4).number(1, 8).number(4, 4).number(0, 8);
    const json metadata = *open_text(bytes.text()).gguf_metadata;
    for (int type : {0, 1, 2, 3, 4, 5, 10, 11})
        CHECK(metadata["k" + std::to_string(type)] == json{1, 0});
    CHECK(metadata["k7"] == json{true, false});
    CHECK(metadata["k12"] == json{5e-324, 0.0});
    CHECK(metadata["words"][1].get<std::string>() == "\xff");
    CHECK(metadata["lists"] == json::array({json::array()}));
}

TEST_CASE("gguf: integers of any type count, and keys that llama.cpp requires are required") {
    const std::string text = read_text(data_path("gguf/tiny.gguf"));
    const auto opened = [](const std::string& changed) {
        return error_of([&] { static_cast<void>(gguf_model(open_text(changed))); });
    };
    CHECK(opened(text).empty());
    const std::string layers = "llama.block_count";
    const std::size_t at = text.find(layers) + layers.size();
    std::string changed = text;
    changed.replace(at, 4, bytes_of_number(5, 4));  // int32
    CHECK(opened(changed).empty());
    const ModelFiles model = gguf_model(open_text(changed));
    CHECK(model.config["num_hidden_layers"].is_number_unsigned());
    changed.replace(at + 4, 4, std::string(4, '\xff'));
    CHECK(contains(opened(changed), "llama.block_count is -1; expected an integer from 1"));
    changed = text;
    changed.replace(text.find("llama.attention.layer_norm_rms"), 5, "lemma");
    CHECK(contains(opened(changed), "layer_norm_rms_epsilon is missing; expected a number"));
    const std::string dims = "llama.rope.dimension_count";
    changed = text;
    REQUIRE(text.find(dims) != std::string::npos);
    changed.replace(text.find(dims) + dims.size() + 4, 4, bytes_of_number(7, 4));
    CHECK(contains(opened(changed), "rope.dimension_count is 7; expected an even number"));
}

TEST_CASE("gguf: parts of a split file are found by the first one's name") {
    const std::string folder = scratch_folder() + "/split";
    std::filesystem::create_directory(folder);
    const auto part = [](std::uint64_t number, std::uint64_t count, const std::string& name) {
        return GgufBytes(1, 3)
            .key("split.no", 2)
            .number(number, 2)
            .key("split.count", 2)
            .number(count, 2)
            .key("split.tensors.count", 5)
            .number(2, 4)
            .tensor(name, {1}, 0, 0)
            .floats({static_cast<float>(number)})
            .text();
    };
    const std::string first = folder + "/m-00001-of-00002.gguf",
                      second = folder + "/m-00002-of-00002.gguf";
    write_text(first, part(0, 2, "a"));
    CHECK(contains(error_of([&] { open_input_file(first); }), second));
    write_text(second, part(1, 2, "b"));
    const ArrayFile file = *open_input_file(first).arrays;
    REQUIRE(file.arrays.size() == 2);
    CHECK(floats_of(*file.find("b")) == std::vector<float>{1});
    CHECK(contains(error_of([&] { open_input_file(second); }),
                   "is part 2 of 2; expected the first, ...-00001-of-00002.gguf"));
    write_text(second, part(1, 2, "a"));
    CHECK(contains(error_of([&] { open_input_file(first); }), "is also in another part"));
    write_text(second, part(1, 3, "b"));
    CHECK(contains(error_of([&] { open_input_file(first); }), "expected 1 and 2"));
    write_text(folder + "/m.gguf", part(0, 2, "a"));
    CHECK(contains(error_of([&] { open_input_file(folder + "/m.gguf"); }),
                   "expected a name that ends with -00001-of-00002.gguf"));
}

TEST_CASE("gguf: a model has the config and the tensors of transformers") {
    const ModelFiles model = open_gguf_model(data_path("gguf/tiny.gguf"));
    CHECK(model.config == load_data("gguf/tiny.json"));
    CHECK(model.tokenizer_metadata.size() == 2);
    const ArrayFile expected = *open_input_file(data_path("gguf/tiny.safetensors")).arrays;
    CHECK(model.tensors.arrays.size() == expected.arrays.size());
    for (const StoredArray& array : expected.arrays) {
        CAPTURE(array.name);
        const StoredArray* found = model.tensors.find(array.name);
        REQUIRE(found != nullptr);
        CHECK(found->shape == array.shape);
        CHECK(floats_of(*found) == floats_of(array));
    }
}

TEST_CASE("gguf: models that would be computed wrongly are refused") {
    const auto refused = [](const GgufBytes& bytes) {
        return error_of([&] { gguf_model(open_text(bytes.text())); });
    };
    const auto llama = [](std::uint64_t tensors, std::uint64_t keys) {
        return GgufBytes(tensors, keys + 5)
            .word("general.architecture", "llama")
            .uint32("llama.embedding_length", 8)
            .uint32("llama.block_count", 1)
            .uint32("llama.attention.head_count", 2)
            .key("llama.attention.layer_norm_rms_epsilon", 6)
            .number(0x3727C5AC, 4);  // 1e-5
    };
    CHECK(refused(llama(0, 0)).empty());
    const auto with = [&](const char* name, std::vector<std::uint64_t> shape, std::size_t count) {
        return llama(1, 0).tensor(name, shape, 0, 0).floats(std::vector<float>(count));
    };
    const std::pair<GgufBytes, const char*> wrong[]{
        {GgufBytes(0, 1).word("general.architecture", "mamba"),
         "general.architecture is \"mamba\"; expected one of llama, qwen2"},
        {GgufBytes(0, 0), "no general.architecture"},
        {GgufBytes(0, 1).word("general.architecture", "llama"),
         "llama.embedding_length is missing"},
        {llama(0, 1).uint32("llama.wonder", 1), "llama.wonder may change the numbers"},
        {llama(0, 1).uint32("llama.attention.value_length", 2), "expected 4, the width of keys"},
        {llama(0, 1).uint32("llama.attention.head_count_kv", 3), "expected a divisor of 2 heads"},
        {with("blk.0.odd.weight", {8}, 8), "is not a tensor of the architecture llama"},
        {with("blk.1.attn_norm.weight", {8}, 8), "is of block 1; expected 0 to 0"},
        {with("blk.0.attn_q.weight", {8, 6}, 48), "shape (6, 8); expected 8 rows"}};
    for (const auto& row : wrong)
        CHECK_MESSAGE(contains(refused(row.first), row.second), row.second);
}

}  // namespace
}  // namespace gguf_test
