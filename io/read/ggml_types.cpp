#include "io/read/gguf_header.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/base/memory.hpp"

namespace attn::io {
namespace {

constexpr std::optional<ElementType> packed = std::nullopt;

/// Those without a size were removed from ggml; their names remain.
constexpr std::array<GgmlType, 42> ggml_types{{
    {0, "F32", 1, 4, ElementType::float32, nullptr},
    {1, "F16", 1, 2, ElementType::float16, nullptr},
    {30, "BF16", 1, 2, ElementType::bfloat16, nullptr},
    {28, "F64", 1, 8, ElementType::float64, nullptr},
    {24, "I8", 1, 1, ElementType::int8, nullptr},
    {25, "I16", 1, 2, ElementType::int16, nullptr},
    {26, "I32", 1, 4, ElementType::int32, nullptr},
    {27, "I64", 1, 8, ElementType::int64, nullptr},
    {2, "Q4_0", 32, 18, packed, decode_q4_0},
    {3, "Q4_1", 32, 20, packed, decode_q4_1},
    {6, "Q5_0", 32, 22, packed, decode_q5_0},
    {7, "Q5_1", 32, 24, packed, decode_q5_1},
    {8, "Q8_0", 32, 34, packed, decode_q8_0},
    {10, "Q2_K", 256, 84, packed, decode_q2_k},
    {11, "Q3_K", 256, 110, packed, decode_q3_k},
    {12, "Q4_K", 256, 144, packed, decode_q4_k},
    {13, "Q5_K", 256, 176, packed, decode_q5_k},
    {14, "Q6_K", 256, 210, packed, decode_q6_k},
    {20, "IQ4_NL", 32, 18, packed, decode_iq4_nl},
    {23, "IQ4_XS", 256, 136, packed, decode_iq4_xs},
    {39, "MXFP4", 32, 17, packed, decode_mxfp4},
    {4, "Q4_2", 0, 0, packed, nullptr},
    {5, "Q4_3", 0, 0, packed, nullptr},
    {9, "Q8_1", 32, 36, packed, nullptr},
    {15, "Q8_K", 256, 292, packed, nullptr},
    {16, "IQ2_XXS", 256, 66, packed, nullptr},
    {17, "IQ2_XS", 256, 74, packed, nullptr},
    {18, "IQ3_XXS", 256, 98, packed, nullptr},
    {19, "IQ1_S", 256, 50, packed, nullptr},
    {21, "IQ3_S", 256, 110, packed, nullptr},
    {22, "IQ2_S", 256, 82, packed, nullptr},
    {29, "IQ1_M", 256, 56, packed, nullptr},
    {31, "Q4_0_4_4", 0, 0, packed, nullptr},
    {32, "Q4_0_4_8", 0, 0, packed, nullptr},
    {33, "Q4_0_8_8", 0, 0, packed, nullptr},
    {34, "TQ1_0", 256, 54, packed, nullptr},
    {35, "TQ2_0", 256, 66, packed, nullptr},
    {36, "IQ4_NL_4_4", 0, 0, packed, nullptr},
    {37, "IQ4_NL_4_8", 0, 0, packed, nullptr},
    {38, "IQ4_NL_8_8", 0, 0, packed, nullptr},
    {40, "NVFP4", 64, 36, packed, nullptr},
    {41, "Q1_0", 128, 18, packed, nullptr},
}};

class BlockDequantiser : public Dequantiser {
public:
    BlockDequantiser(std::shared_ptr<const Bytes> bytes, std::uint64_t offset, const GgmlType& type)
        : bytes_(std::move(bytes)), offset_(offset), type_(type) {}

    void read(std::size_t first, std::size_t count, float* to) const override {
        const std::size_t values = type_.values;
        std::vector<char> buffer;
        std::array<float, max_block_values> block;
        if (const std::size_t skip = first % values; skip != 0 && count != 0) {
            const std::size_t now = std::min(count, values - skip);
            read_blocks(first / values, 1, buffer, block.data());
            std::copy_n(block.data() + skip, now, to);
            first += now;
            to += now;
            count -= now;
        }
        const std::size_t whole = count / values;
        read_blocks(first / values, whole, buffer, to);
        if (const std::size_t rest = count % values; rest != 0) {
            read_blocks(first / values + whole, 1, buffer, block.data());
            std::copy_n(block.data(), rest, to + whole * values);
        }
    }

private:
    void read_blocks(std::size_t first, std::size_t count, std::vector<char>& buffer,
                     float* to) const {
        if (const char* const file = bytes_->mapped()) {
            const char* const from = file + offset_ + std::uint64_t{first} * type_.bytes;
            return type_.decode(reinterpret_cast<const std::uint8_t*>(from), count, to);
        }
        constexpr std::size_t buffer_bytes = std::size_t{1} << 16;  // stays in the cache
        const std::size_t at_once = buffer_bytes / type_.bytes;
        while (count != 0) {
            const std::size_t now = std::min(count, at_once), size = now * type_.bytes;
            const std::uint64_t offset = offset_ + std::uint64_t{first} * type_.bytes;
            if (buffer.size() < size) buffer.resize(size);
            bytes_->read(offset, size, buffer.data());
            type_.decode(reinterpret_cast<const std::uint8_t*>(buffer.data()), now, to);
            first += now;
            count -= now;
            to += now * type_.values;
        }
    }

    std::shared_ptr<const Bytes> bytes_;
    std::uint64_t offset_;
    const GgmlType& type_;  // a row of the table
};

}  // namespace

const GgmlType* find_ggml_type(std::uint32_t number) {
    const auto found = std::find_if(ggml_types.begin(), ggml_types.end(),
                                    [&](const GgmlType& row) { return row.number == number; });
    return found == ggml_types.end() ? nullptr : &*found;
}

const GgmlType* find_ggml_type(std::string_view name) {
    const auto found = std::find_if(ggml_types.begin(), ggml_types.end(),
                                    [&](const GgmlType& row) { return row.name == name; });
    return found == ggml_types.end() ? nullptr : &*found;
}

const std::string& readable_ggml_types() {
    static const std::string list = [] {
        std::string text;
        for (const GgmlType& row : ggml_types)
            if (row.is_readable()) text += (text.empty() ? "" : ", ") + std::string(row.name);
        return text;
    }();
    return list;
}

std::shared_ptr<const Dequantiser> dequantiser_of_blocks(std::shared_ptr<const Bytes> bytes,
                                                         std::uint64_t offset,
                                                         const GgmlType& type) {
    return std::make_shared<const BlockDequantiser>(std::move(bytes), offset, type);
}

}  // namespace attn::io
