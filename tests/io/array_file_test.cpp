// Binary array files: those of NumPy and safetensors against their values. Damaged ones: hostile/.
#include "io/read/array_file.hpp"
#include "io/read/input_formats.hpp"
#include "tests/support/support.hpp"

namespace array_file_test {

using namespace attn;
using namespace attn::io;
using namespace attn::test;
using nlohmann::json;

const ArrayRules anything = ArrayRules::anything(8);

/// Calls take(array, entry) for the arrays of a list of data/arrays/expected.json.
template <class Take>
void for_each_array(const char* list, const Take& take) {
    const json expected = load_data("arrays/expected.json");
    for (const json& entry : expected[list]) {
        const std::string path = data_path("arrays/" + entry["file"].get<std::string>());
        CAPTURE(path);
        const InputFile file = open_input_file(path);
        const StoredArray* array = file.arrays->find(entry.value("array", ""));
        REQUIRE(array != nullptr);
        take(*array, entry);
    }
}

TEST_CASE("array files: every array of NumPy and safetensors has the values that it was given") {
    for_each_array("readable", [](const StoredArray& array, const json& entry) {
        CHECK(array.shape == entry["shape"].get<std::vector<std::size_t>>());
        if (array.elements() == 0) {
            CHECK(
                contains(error_of([&] { read_numbers(array, anything); }), "at least one element"));
            return;
        }
        const NumberArray read = read_numbers(array, anything);
        if (!entry.contains("values")) return;
        const std::vector<double> values = flat(entry["values"]);
        REQUIRE(read.values.size() == values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            CHECK(same_bits(read.values.data()[i], values[i]));
    });
}

TEST_CASE("array files: arrays without numbers are refused by name, their neighbours are not") {
    for_each_array("refused", [](const StoredArray& array, const json&) {
        CHECK(contains(error_of([&] { read_numbers(array, anything); }), "elements of type"));
    });
}

TEST_CASE("names: a colon parts file and array, unless a file has that whole name") {
    scratch_folder();
    CHECK(split_data_path("a.npz:b").array == "b");
    CHECK(split_data_path("a.npz:b:c").array == "b:c");
    CHECK(split_data_path("-:b").file == "-");
    CHECK(split_data_path("a.csv:b").file == "a.csv:b");
    write_text("odd.npz:b", "");
    CHECK(split_data_path("odd.npz:b").array == "");
    std::filesystem::remove("odd.npz:b");
}

}  // namespace array_file_test
