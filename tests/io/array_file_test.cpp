// Binary array files: those of NumPy and safetensors against their values, and damaged ones.
#include <doctest/doctest.h>

#include <filesystem>

#include <nlohmann/json.hpp>

#include "io/read/array_file.hpp"
#include "io/read/input_formats.hpp"
#include "tests/support/support.hpp"

namespace array_file_test {

using namespace attn;
using namespace attn::io;
using namespace attn::test;
using nlohmann::json;

namespace {

const ArrayRules anything = ArrayRules::anything(8);

ArrayFile open_bytes(const InputFormat& format, const std::string& bytes) {
    return format.open(Bytes::of("damaged", bytes));
}

const char* const examples[] = {"matrix_f4.npy",           "batch_f8_big.npy",
                                "matrix_f4_version_3.npy", "several_stored.npz",
                                "several_deflated.npz",    "types.safetensors"};

}  // namespace

TEST_CASE("array files: every array of NumPy and safetensors has the values that it was given") {
    const json expected = load_data("arrays/expected.json");
    for (const json& entry : expected["readable"]) {
        const std::string path = data_path("arrays/" + entry["file"].get<std::string>());
        CAPTURE(path);
        const InputFile file = open_input_file(path);
        const StoredArray* array = file.arrays->find(entry.value("array", ""));
        REQUIRE(array != nullptr);
        CHECK(array->shape == entry["shape"].get<std::vector<std::size_t>>());
        if (array->elements() == 0) {
            CHECK(error_of([&] { read_numbers(*array, anything); }).find("at least one element") !=
                  std::string::npos);
            continue;
        }
        const NumberArray read = read_numbers(*array, anything);
        if (!entry.contains("values")) continue;
        const std::vector<double> values = flat(entry["values"]);
        REQUIRE(read.values.size() == values.size());
        for (std::size_t i = 0; i < values.size(); ++i)
            CHECK(same_bits(read.values.data()[i], values[i]));
    }
}

TEST_CASE("array files: arrays without numbers are refused by name, their neighbours are not") {
    const json expected = load_data("arrays/expected.json");
    for (const json& entry : expected["refused"]) {
        const std::string path = data_path("arrays/" + entry["file"].get<std::string>());
        CAPTURE(path);
        const InputFile file = open_input_file(path);
        const StoredArray* array = file.arrays->find(entry.value("array", ""));
        REQUIRE(array != nullptr);
        CHECK(error_of([&] { read_numbers(*array, anything); }).find("elements of type") !=
              std::string::npos);
    }
}

TEST_CASE("array files: rows from the middle are those of the whole") {
    for (const char* name : {"several_stored.npz", "several_deflated.npz", "types.safetensors"}) {
        const InputFile file = open_input_file(data_path(std::string("arrays/") + name));
        for (const StoredArray& array : file.arrays->arrays) {
            if (array.elements() < 4 || array.fortran_order) continue;
            const NumberArray whole = read_numbers(array, anything);
            read_elements<double>(
                array, 2, 2, [&](std::size_t before, std::span<const double> some) {
                    for (std::size_t i = 0; i < some.size(); ++i)
                        CHECK(same_bits(some[i], whole.values.data()[2 + before + i]));
                });
        }
    }
}

TEST_CASE("array files: cut short at any byte they are refused or read, never worse") {
    for (const char* name : examples) {
        const std::string bytes = read_text(data_path(std::string("arrays/") + name));
        for (std::size_t length = 0; length < bytes.size(); ++length) {
            const std::string cut = bytes.substr(0, length);
            const bool accepted = error_of([&] { open_bytes(*format_of_name(name), cut); }).empty();
            CAPTURE(name);
            CAPTURE(length);
            CHECK_FALSE(accepted);
        }
    }
}

TEST_CASE("safetensors: what the format forbids is refused with the writer's quirk named") {
    const auto complaint_of = [](const std::string& header, std::size_t data) {
        std::string bytes(8, '\0');
        for (std::size_t i = 0; i < 8; ++i)
            bytes[i] = static_cast<char>(header.size() >> (8 * i) & 255);
        bytes += header + std::string(data, '\0');
        return error_of([&] { open_safetensors(Bytes::of("x", bytes)); });
    };
    const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
    CHECK(complaint_of("{" + a + "}   ", 8) == "");
    CHECK(complaint_of("{" + a + "}", 12) ==
          "x: safetensors: 4 bytes after \"a\", as writers leave that pad the file; expected none");
    CHECK(complaint_of("{" + a + std::string("}\0\0", 3), 8) ==
          "x: safetensors: a header padded with zero bytes; expected blanks (0x20)");
    CHECK(complaint_of(" {" + a + "}", 8) ==
          "x: safetensors: a header that starts with ' '; expected '{' at once, without blanks "
          "before it");
    CHECK(complaint_of("{" + a + "," + a + "}", 8) ==
          "x: header:1:55: the key \"a\" appears twice; expected it once");
    CHECK(
        complaint_of("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16) ==
        "x: safetensors: 4 bytes between \"a\" and \"b\", as writers leave that align tensors; "
        "expected none");
    CHECK(complaint_of("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8) ==
          "x: safetensors: \"a\" and \"b\" overlap; expected tensors side by side");
    CHECK(
        complaint_of("{" + a + "}", 4) ==
        "x: safetensors: \"a\" has data_offsets [0, 8], but 4 bytes follow the header; the file is "
        "cut short");
    CHECK(
        complaint_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8) ==
        "x: safetensors: \"a\" of shape (3) and dtype F32 takes 12 bytes, but its data_offsets are "
        "[0, 8]; expected as many");
    // Types of other programs do not prevent reading known ones.
    CHECK(complaint_of(R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", 8) == "");
    std::string long_header = "{";
    long_header.append(100'000'000, ' ');
    CHECK(complaint_of(long_header, 0) ==
          "x: safetensors: a header of 100000001 bytes; expected at most 33554432");
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
