// Blocks of few bits against the values of llama.cpp's Python package, bit for bit.
#include "core/base/low_precision.hpp"
#include "io/read/gguf_header.hpp"
#include "io/read/input_file.hpp"
#include "tests/support/gguf_bytes.hpp"

namespace blocks_test {
namespace {

using namespace attn;
using namespace attn::io;
using namespace attn::test;

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
}  // namespace blocks_test
