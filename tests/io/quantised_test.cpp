// Weights in FP8 and MXFP4 against plain formulas, and other methods by name; blocks of few bits
// against the values of llama.cpp's Python package, bit for bit.
#include "io/model/quantised.hpp"
#include "core/base/low_precision.hpp"
#include "io/model/find_layer.hpp"
#include "io/read/gguf_header.hpp"
#include "io/read/input_file.hpp"
#include "tests/support/drawn_model.hpp"
#include "tests/support/gguf_bytes.hpp"

namespace quantised_test {
namespace {

using namespace attn;
using namespace attn::io;
using namespace attn::test;
using nlohmann::json;
using Tensor = StoredTensor;

ArrayFile file_of(const std::vector<Tensor>& tensors) {
    return open_safetensors(Bytes::of("x.safetensors", safetensors_of(tensors)));
}

std::string codes(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 0x7f);
    return bytes;
}

std::string floats(const std::vector<float>& values) {
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

json config_of(const json& method) {
    return {{"quantization_config", method}};
}

const json fp8 = {{"quant_method", "fp8"}, {"weight_block_size", {2, 4}}};

/// Half of the elements after each are those of the whole.
void check_ranges(const StoredArray& array) {
    const std::vector<float> whole = floats_of(array);
    for (std::size_t first = 0; first < whole.size(); ++first) {
        std::vector<float> some((whole.size() - first) / 2);
        read_floats(array, first, some.size(), some.data());
        CHECK(std::equal(some.begin(), some.end(),
                         whole.begin() + static_cast<std::ptrdiff_t>(first)));
    }
}

/// The matrix by blocks of this size, with one scale for each.
void check_scaled(std::size_t rows, std::size_t columns, std::size_t block_rows,
                  std::size_t block_columns, const std::vector<std::size_t>& shape,
                  const json& method) {
    const std::string bytes = codes(rows * columns, 3);
    std::size_t count = 1;
    for (std::size_t size : shape) count *= size;
    std::vector<float> scales(count);
    for (std::size_t i = 0; i < count; ++i) scales[i] = 0.37f + 0.11f * static_cast<float>(i);
    const ArrayFile file =
        dequantised(file_of({{"a.weight", "F8_E4M3", {rows, columns}, bytes},
                             {"a.weight_scale_inv", "F32", shape, floats(scales)},
                             {"a.activation_scale", "F32", json::array(), floats({2})}}),
                    config_of(method));
    REQUIRE(file.arrays.size() == 1);
    const StoredArray& array = *file.find("a.weight");
    const std::vector<float> read = floats_of(array);
    const std::size_t across = (columns + block_columns - 1) / block_columns;
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < read.size(); ++i) {
        const std::size_t row = i / columns, column = i % columns;
        const float scale = scales[row / block_rows * across + column / block_columns];
        wrong += read[i] != float_of_e4m3(static_cast<std::uint8_t>(bytes[i])) * scale;
    }
    CHECK(wrong == 0);
    check_ranges(array);
}

TEST_CASE("quantised: FP8 in blocks with ragged edges, by rows, and with one scale") {
    check_scaled(5, 9, 2, 4, {3, 3}, fp8);
    check_scaled(4, 8, 2, 4, {2, 2}, fp8);
    check_scaled(5, 9, 5, 9, {}, {{"quant_method", "fp8"}});
    check_scaled(5, 9, 5, 9, {1}, {{"quant_method", "fp8"}, {"weight_block_size", nullptr}});
    check_scaled(5, 9, 1, 9, {5, 1},
                 {{"quant_method", "compressed-tensors"}, {"format", "float-quantized"}});
}

TEST_CASE("quantised: MXFP4 has two values in a byte, the low half first") {
    std::string bytes = codes(2 * 3 * 2 * 16, 5), scales;
    for (int i = 0; i < 2 * 3 * 2; ++i) scales += static_cast<char>(120 + i);
    const ArrayFile file = dequantised(file_of({{"e.w_blocks", "U8", {2, 3, 2, 16}, bytes},
                                                {"e.w_scales", "U8", {2, 3, 2}, scales}}),
                                       config_of({{"quant_method", "mxfp4"}}));
    REQUIRE(file.arrays.size() == 1);
    const StoredArray& array = *file.find("e.w");
    CHECK(array.shape == std::vector<std::size_t>{2, 3, 64});
    const std::vector<float> read = floats_of(array);
    const double levels[8]{0, 0.5, 1, 1.5, 2, 3, 4, 6};
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < read.size(); ++i) {
        const unsigned byte = static_cast<unsigned char>(bytes[i / 2]);
        const unsigned code = i % 2 == 0 ? byte & 15 : byte >> 4;
        const double value = std::ldexp(levels[code & 7], 120 + static_cast<int>(i / 32) - 127);
        wrong += read[i] != static_cast<float>(code < 8 ? value : -value);
    }
    CHECK(wrong == 0);
    check_ranges(array);
}

TEST_CASE("quantised: other methods are refused by name, with the fix") {
    const ArrayFile plain = file_of({{"a.weight", "F32", {1}, floats({1})}});
    for (const char* name : {"gptq", "awq", "bitsandbytes", "compressed-tensors", "hqq"}) {
        const std::string error = error_of([&] {
            dequantised(plain, config_of({{"quant_method", name}}));
        });
        CHECK(contains(error, std::string("quant_method \"") + name + "\""));
        CHECK(contains(error, "convert the model to GGUF or to bfloat16 safetensors"));
    }
    const std::pair<const char*, const char*> names[]{
        {"a.qweight", "GPTQ or AWQ"}, {"a.g_idx", "GPTQ"}, {"a.weight.absmax", "bitsandbytes"}};
    for (const auto& one : names) {
        const std::string error = error_of([&] {
            dequantised(file_of({{one.first, "I32", {1}, floats({1})}}), json());
        });
        CHECK(contains(error, std::string("\"") + one.first + "\" is of " + one.second));
    }
    CHECK(dequantised(plain, json()).arrays.size() == 1);
    CHECK(dequantised(plain, json::object()).arrays.size() == 1);
}

TEST_CASE("quantised: scales of another shape are refused") {
    const auto refused = [](const std::vector<std::size_t>& shape, const json& method) {
        std::size_t count = 1;
        for (std::size_t size : shape) count *= size;
        return error_of([&] {
            dequantised(
                file_of({{"a.weight", "F8_E4M3", {5, 9}, codes(45, 1)},
                         {"a.weight_scale", "F32", shape, floats(std::vector<float>(count, 1))}}),
                config_of(method));
        });
    };
    CHECK(contains(refused({2, 3}, fp8),
                   "scales of shape (2, 3) for a matrix of shape (5, 9); "
                   "expected (3, 3), by weight_block_size"));
    CHECK(contains(refused({3, 3}, {{"quant_method", "fp8"}}), "or weight_block_size in config"));
    CHECK(contains(refused({3, 3}, {{"quant_method", "fp8"}, {"weight_block_size", {0, 1}}}),
                   "expected two positive integers"));
    const auto blocks = [](const json& shape, const std::string& scales) {
        return error_of([&] {
            dequantised(file_of({{"w_blocks", "U8", shape, codes(16, 1)},
                                 {"w_scales", "U8", {scales.size()}, scales}}),
                        json());
        });
    };
    CHECK(contains(blocks({2, 8}, "ab"), "expected blocks of 16 bytes"));
    CHECK(contains(blocks({1, 1, 16}, "a"), "expected U8 and (1, 1)"));
}

TEST_CASE("quantised: each scale that the method requires is named if it is missing") {
    const std::vector<Tensor> both{{"a.weight", "F8_E4M3", {2, 2}, codes(4, 1)},
                                   {"a.weight_scale_inv", "F32", {1, 1}, floats({2})},
                                   {"b.weight", "F8_E5M2", {2, 2}, codes(4, 1)},
                                   {"b.weight_scale_inv", "F32", {1, 1}, floats({3})},
                                   {"c_blocks", "U8", {1, 1, 16}, codes(16, 1)},
                                   {"c_scales", "U8", {1, 1}, "a"}};
    CHECK(dequantised(file_of(both), config_of(fp8)).arrays.size() == 3);
    for (std::size_t i = 1; i < both.size(); i += 2)
        for (const json& method :
             {fp8, json{{"quant_method", "fp8"}}, json{{"quant_method", "mxfp4"}}}) {
            std::vector<Tensor> less = both;
            less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
            const std::string error =
                error_of([&] { dequantised(file_of(less), config_of(method)); });
            CAPTURE(error);
            CHECK(contains(error, "\"" + both[i].name + "\""));
            CHECK(contains(error, ":" + both[i - 1].name));
            // Without a method in the config they are what they are.
            CHECK(dequantised(file_of(less), json()).arrays.size() == 3);
        }
}

TEST_CASE("rearranged: parts, transposes and turns, in any range") {
    std::vector<float> numbers(2 * 3 * 4);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
    const ArrayFile file =
        file_of({{"a", "F32", {2, 3, 4}, floats(numbers)}, {"m", "F32", {6, 4}, floats(numbers)}});
    CHECK(floats_of(part_of("p", *file.find("a"), 1)) ==
          std::vector<float>(numbers.begin() + 12, numbers.end()));
    const StoredArray turned = transposed("t", *file.find("m"));
    CHECK(turned.shape == std::vector<std::size_t>{4, 6});
    const std::vector<float> columns = floats_of(turned);
    for (std::size_t i = 0; i < columns.size(); ++i)
        CHECK(columns[i] == static_cast<float>(i % 6 * 4 + i / 6));
    const StoredArray rows = by_turns("r", {12, 4}, *file.find("m"), turned, 4);
    const std::vector<float> mixed = floats_of(rows);
    for (std::size_t i = 0; i < mixed.size(); ++i) {
        const std::size_t from = i / 8 * 4 + i % 4;
        CHECK(mixed[i] == (i / 4 % 2 == 0 ? numbers[from] : columns[from]));
    }
    for (const StoredArray& array : {turned, rows, part_of("p", turned, 2)}) check_ranges(array);
}

/// Every TYPE.blocks of the file against TYPE.values; the number of types that can be read.
std::size_t check_blocks(const std::string& path) {
    const InputFile file = open_input_file(path);
    std::size_t readable = 0;
    for (const StoredArray& blocks : file.arrays->arrays) {
        constexpr std::string_view ending = ".blocks";
        if (!blocks.name.ends_with(ending)) continue;
        const std::string name = blocks.name.substr(0, blocks.name.size() - ending.size());
        CAPTURE(name);
        const GgmlType* const type = find_ggml_type(name);
        REQUIRE(type != nullptr);
        if (type->decode == nullptr) {
            CHECK((type->type || !type->is_readable()));
            continue;
        }
        ++readable;
        const std::vector<float> expected = floats_of(*file.arrays->find(name + ".values"));
        const std::string bytes =
            blocks.bytes->read(blocks.offset, static_cast<std::size_t>(blocks.size));
        REQUIRE(bytes.size() % type->bytes == 0);
        REQUIRE(bytes.size() / type->bytes * type->values == expected.size());
        const auto values = dequantiser_of_blocks(Bytes::of("blocks", bytes), 0, *type);
        std::vector<float> read(expected.size());
        values->read(0, read.size(), read.data());
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < read.size(); ++i) wrong += !same_bits(read[i], expected[i]);
        CHECK(wrong == 0);
    }
    return readable;
}

TEST_CASE("blocks: every type has the values of llama.cpp, of any scale") {
    CHECK(check_blocks(data_path("gguf/blocks.safetensors")) == 13);
}

TEST_CASE("blocks: any range of elements is that of the whole") {
    const InputFile file = open_input_file(data_path("gguf/blocks.safetensors"));
    std::mt19937 random(1);
    for (const char* name : {"Q4_0", "Q6_K", "MXFP4", "IQ4_XS"}) {
        const StoredArray& blocks = *file.arrays->find(std::string(name) + ".blocks");
        const GgmlType& type = *find_ggml_type(name);
        StoredArray array = blocks;
        array.type = NumberType::float32;
        array.shape = {blocks.shape[0], type.values};
        array.dequantiser = dequantiser_of_blocks(array.bytes, array.offset, type);
        const std::vector<float> whole = floats_of(array);
        for (int run = 0; run < 200; ++run) {
            const std::size_t first = random() % whole.size(),
                              count = random() % (whole.size() - first + 1);
            std::size_t seen = 0, wrong = 0;
            read_elements<double>(
                array, first, count, [&](std::size_t before, std::span<const double> some) {
                    for (std::size_t i = 0; i < some.size(); ++i, ++seen)
                        wrong += !same_bits(static_cast<float>(some[i]), whole[first + before + i]);
                });
            CHECK(seen == count);
            CHECK(wrong == 0);
        }
    }
}

TEST_CASE("blocks: larger arrays than a buffer are read by several threads") {
    const GgmlType& type = *find_ggml_type("Q8_0");
    constexpr std::size_t blocks = 20000;
    std::string bytes;
    for (std::size_t i = 0; i < blocks; ++i) {
        bytes += std::string("\x00\x3c", 2);  // 1
        bytes.append(32, static_cast<char>(i % 100));
    }
    StoredArray array;
    array.bytes = Bytes::of("blocks", bytes);
    array.shape = {blocks, 32};
    array.type = NumberType::float32;
    array.dequantiser = dequantiser_of_blocks(array.bytes, 0, type);
    ThreadPool workers;
    const Array<float> read = read_array<float>(array, ArrayRules::anything(2), &workers);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < read.size(); ++i)
        wrong += read.data()[i] != static_cast<float>(i / 32 % 100);
    CHECK(wrong == 0);
}

TEST_CASE("small floats: all codes of 8 bits have the values of their definitions") {
    for (unsigned code = 0; code < 256; ++code) {
        const auto bits = static_cast<std::uint8_t>(code);
        const double sign = code < 128 ? 1 : -1;
        const unsigned rest = code & 127, exponent = rest >> 3, mantissa = rest & 7;
        const double e4m3 = exponent == 0
                                ? std::ldexp(mantissa, -9)
                                : std::ldexp(8 + mantissa, static_cast<int>(exponent) - 10);
        const float expected = rest == 127 ? NAN : static_cast<float>(sign * e4m3);
        CHECK(same_bits(float_of_e4m3(bits), expected));
        const unsigned high = rest >> 2, low = rest & 3;
        const double e5m2 = high == 31  ? (low == 0 ? INFINITY : NAN)
                            : high == 0 ? std::ldexp(low, -16)
                                        : std::ldexp(4 + low, static_cast<int>(high) - 17);
        CHECK(same_bits(float_of_e5m2(bits), static_cast<float>(sign * e5m2)));
        const float e8m0 =
            code == 255 ? NAN : static_cast<float>(std::ldexp(1.0, static_cast<int>(code) - 127));
        CHECK(same_bits(float_of_e8m0(bits), e8m0));
    }
}

}  // namespace
}  // namespace quantised_test
