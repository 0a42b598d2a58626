// Checkpoints of torch.save and Flax against the same tensors in safetensors. Hostile ones:
// hostile/torch.py, hostile/flax.py.
#include "io/read/array_file.hpp"
#include "io/read/input_formats.hpp"
#include "io/transformer/model.hpp"
#include "tests/support/support.hpp"

namespace torch_file_test {
namespace {

using namespace attn;
using namespace attn::io;
using namespace attn::test;

constexpr std::array<const char*, 2> forms{"checkpoints/zip.pt", "checkpoints/old.pt"};
constexpr const char* flax_form = "checkpoints/flax.msgpack";

/// Numbers, in pieces of `piece` elements; rank 0 and no elements too.
template <class T>
std::vector<T> numbers_of(const StoredArray& array, std::size_t piece) {
    std::vector<T> numbers(array.elements());
    for (std::size_t at = 0; at < numbers.size(); at += piece)
        read_elements(array, at, std::min(piece, numbers.size() - at), numbers.data() + at);
    return numbers;
}

}  // namespace

TEST_CASE("torch.save and Flax: all forms have the tensors of the same safetensors") {
    const InputFile same = open_input_file(data_path("checkpoints/same.safetensors"));
    for (const char* form : {forms[0], forms[1], flax_form}) {
        const InputFile file = open_input_file(data_path(form));
        CHECK(file.arrays->arrays.size() == same.arrays->arrays.size() + 1);
        CHECK_FALSE(file.arrays->find("model.complex")->type.has_value());
        for (const StoredArray& expected : same.arrays->arrays) {
            CAPTURE(expected.name);
            const StoredArray* const array = file.arrays->find(expected.name);
            REQUIRE(array != nullptr);
            CHECK((array->type == expected.type || array->dequantiser != nullptr));  // in chunks
            CHECK(array->shape == expected.shape);
            for (const std::size_t piece : {1u, 2u, 100u})
                CHECK(numbers_of<double>(*array, piece) == numbers_of<double>(expected, 100));
            if (expected.elements() == 0) continue;
            const ArrayRules rules = ArrayRules::anything(8);
            const auto own = read_array<float>(*array, rules),
                       right = read_array<float>(expected, rules);
            CHECK(std::equal(own.begin(), own.end(), right.begin(), right.end(), same_bits<float>));
        }
    }
}

TEST_CASE("torch.save: whole tensors of a zip file stay in the file") {
    const InputFile file = open_input_file(data_path(forms[0]));
    CHECK(elements_in_file<float>(*file.arrays->find("model.weight")) != nullptr);
    CHECK(elements_in_file<float>(*file.arrays->find("model.weight")) ==
          elements_in_file<float>(*file.arrays->find("model.tied")));
    CHECK(elements_in_file<float>(*file.arrays->find("model.transposed")) == nullptr);
}

TEST_CASE(
    "torch.save: contents count, not the name, and every file that is cut short is an error") {
    for (const char* form : forms) {
        const std::string bytes = read_text(data_path(form));
        scratch_folder();
        for (const char* name : {"copy.npz", "copy.bin", "copy", "copy.ckpt"}) {
            if (bytes[0] != 'P' && std::string(name) == "copy.npz") continue;
            write_text(name, bytes);
            const InputFile file = open_input_file(name);
            CHECK(file.arrays->find("model.weight") != nullptr);
        }
        for (std::size_t size = 1; size < bytes.size(); ++size) {
            CAPTURE(size);
            const auto cut = Bytes::of("cut.pt", std::string_view(bytes).substr(0, size));
            CHECK(!error_of([&] { open_torch(cut); }).empty());
        }
    }
}

TEST_CASE("torch.save: a byte order is little or big, and an error names any other") {
    const std::string bytes = read_text(data_path(forms[0]));
    for (const std::string order : {"middle", "Little", "bigbig", "little"}) {
        std::string changed = bytes;
        changed.replace(bytes.find("little"), order.size(), order);
        const std::string error = error_of([&] { open_torch(Bytes::of("x.pt", changed)); });
        CHECK((order == "little" ? error.empty() : contains(error, "\"" + order + "\"")));
    }
}

TEST_CASE("Flax: contents count, not the name, and every file that is cut short is an error") {
    const std::string bytes = read_text(data_path(flax_form));
    scratch_folder();
    write_text("flax", bytes);
    CHECK(open_input_file("flax").format->name == "msgpack");
    CHECK_FALSE(starts_as_flax("\xde\x8b\xde\xa8,1"));  // letters in UTF-8
    for (std::size_t size = 1; size < bytes.size(); ++size) {
        const auto cut = Bytes::of("cut", std::string_view(bytes).substr(0, size));
        CHECK(!error_of([&] { open_flax(cut); }).empty());
    }
}

TEST_CASE("torch.save: a folder's checkpoint may be several files, and comes after safetensors") {
    const std::string folder = scratch_folder() + "/parts/";
    std::filesystem::create_directory(folder);
    write_text(folder + "a.bin", read_text(data_path(forms[0])));
    write_text(folder + "b.bin", read_text(data_path(forms[1])));
    write_text(folder + "pytorch_model.bin.index.json",
               R"({"weight_map": {"model.weight": "a.bin", "list.0": "b.bin"}})");
    CHECK(weights_file(folder) == folder + "pytorch_model.bin.index.json");
    const InputFile file = open_input_file(weights_file(folder));
    CHECK(file.arrays->arrays.size() == 2);
    CHECK(numbers_of<float>(*file.arrays->find("list.0"), 9) == std::vector<float>{1, 1});
    for (const char* name : {"pytorch_model.bin", "model.safetensors"}) {
        write_text(folder + name, "");
        CHECK(weights_file(folder) == folder + name);
    }
    write_text(folder + "b.bin", "{}");
    CHECK(contains(error_of([&] { open_input_file(folder + "pytorch_model.bin.index.json"); }),
                   "does not begin like a file of torch.save"));
}

}  // namespace torch_file_test
