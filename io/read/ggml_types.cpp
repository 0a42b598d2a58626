#include "io/read/gguf_header.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/low_precision.hpp"
#include "core/base/memory.hpp"
#include "core/base/names.hpp"

namespace attn::io {
namespace {

using Byte = std::uint8_t;

/// The halves of the bytes that IQ4_NL and IQ4_XS choose from, and MXFP4 in units of 1/2.
constexpr std::array<float, 16> nonlinear_levels{-127, -104, -83, -65, -49, -35, -22, -10,
                                                 1,    13,   25,  38,  53,  69,  89,  113};
constexpr std::array<float, 16> mxfp4_levels{0, 1,  2,  3,  4,  6,  8,  12,
                                             0, -1, -2, -3, -4, -6, -8, -12};

float half_at(const Byte* from) {
    return float_of_half(static_cast<std::uint16_t>(from[0] | from[1] << 8));
}

/// The numbers of the low halves of `count` bytes, then those of the high halves.
template <std::size_t count, class Value>
void split_halves(const Byte* __restrict from, float* __restrict to, const Value& value) {
    for (std::size_t i = 0; i < count; ++i) to[i] = value(from[i] & 15);
    for (std::size_t i = 0; i < count; ++i) to[count + i] = value(from[i] >> 4);
}

/// The fifth bits of 32 values as bytes of 0 or 16, so that the loop over the values vectorises.
struct FifthBits {
    std::array<Byte, 32> bits;
    explicit FifthBits(const Byte* from) {
        constexpr std::array<Byte, 8> masks{1, 2, 4, 8, 16, 32, 64, 128};
        for (std::size_t byte = 0; byte < 4; ++byte)
            for (std::size_t bit = 0; bit < 8; ++bit)
                bits[8 * byte + bit] = (from[byte] & masks[bit]) != 0 ? 16 : 0;
    }
};

template <class Value>
void split_with_fifth(const FifthBits& high, const Byte* __restrict from, float* __restrict to,
                      const Value& value) {
    for (std::size_t i = 0; i < 16; ++i) to[i] = value((from[i] & 15) | high.bits[i]);
    for (std::size_t i = 0; i < 16; ++i) to[16 + i] = value(from[i] >> 4 | high.bits[16 + i]);
}

/// Scale and minimum number j, of 6 bits each, of the eight that 12 bytes hold.
struct ScaleAndMin {
    float scale, min;
};
ScaleAndMin scale_and_min(const Byte* packed, std::size_t j, float d, float dmin) {
    int scale = packed[j] & 63, min = packed[j + 4] & 63;
    if (j >= 4) {
        scale = (packed[j + 4] & 15) | packed[j - 4] >> 6 << 4;
        min = packed[j + 4] >> 4 | packed[j] >> 6 << 4;
    }
    return {d * static_cast<float>(scale), dmin * static_cast<float>(min)};
}

/// 16 values of a byte each in `from`, of which `shift` selects two bits.
template <class Value>
void two_bits(const Byte* __restrict from, int shift, float* __restrict to, const Value& value) {
    for (std::size_t i = 0; i < 16; ++i) to[i] = value(i, from[i] >> shift & 3);
}

/// 32 values of a half block of Q6_K, with two scales.
template <int low_shift, int high_shift>
void quarter_of_q6_k(const Byte* __restrict low, const Byte* __restrict high, const Byte* scales,
                     float d, float* __restrict to) {
    for (std::size_t side = 0; side < 2; ++side) {
        const float scale = d * static_cast<float>(static_cast<std::int8_t>(scales[side]));
        for (std::size_t i = 16 * side; i < 16 * side + 16; ++i) {
            const int q = (low[i] >> low_shift & 15) | (high[i] >> high_shift & 3) << 4;
            to[i] = scale * static_cast<float>(q - 32);
        }
    }
}

/// Q4_0, Q4_1, Q5_0 and Q5_1: d, of the latter of each kind m, of Q5 the fifth bits, 16 bytes.
template <bool has_min, bool has_fifth>
void decode_q(const Byte* from, float* to) {
    const float d = half_at(from), m = has_min ? half_at(from + 2) : 0;
    const auto value = [d, m](int q) {
        constexpr int offset = has_min ? 0 : has_fifth ? 16 : 8;
        const float number = d * static_cast<float>(q - offset);
        return has_min ? number + m : number;
    };
    from += has_min ? 4 : 2;
    if constexpr (has_fifth)
        split_with_fifth(FifthBits(from), from + 4, to, value);
    else
        split_halves<16>(from, to, value);
}

void decode_q8_0(const Byte* __restrict from, float* __restrict to) {
    const float d = half_at(from);
    for (std::size_t i = 0; i < 32; ++i)
        to[i] = d * static_cast<float>(static_cast<std::int8_t>(from[2 + i]));
}

/// 16 bytes of scales and minima, 64 bytes of values, d, dmin. Value 128 a + 32 b + i: bits 2 b of
/// byte 32 a + i.
void decode_q2_k(const Byte* from, float* to) {
    const float d = half_at(from + 80), dmin = half_at(from + 82);
    for (std::size_t part = 0; part < 16; ++part, to += 16) {
        const float scale = d * static_cast<float>(from[part] & 15);
        const float min = dmin * static_cast<float>(from[part] >> 4);
        two_bits(from + 16 + 32 * (part / 8) + 16 * (part % 2),
                 static_cast<int>(2 * (part / 2 % 4)), to,
                 [=](std::size_t, int q) { return scale * static_cast<float>(q) - min; });
    }
}

/// 32 bytes of high bits, 64 bytes as Q2_K, 12 bytes of 16 scales of 6 bits, d. Bit k of high byte
/// i belongs to value 32 k + i.
void decode_q3_k(const Byte* from, float* to) {
    const Byte* const scales = from + 96;
    const float d = half_at(from + 108);
    for (std::size_t part = 0; part < 16; ++part, to += 16) {
        const int low = part < 8 ? scales[part] & 15 : scales[part - 8] >> 4;
        const int high = scales[8 + part % 4] >> 2 * (part / 4) & 3;
        const float scale = d * static_cast<float>((low | high << 4) - 32);
        const Byte* const high_bits = from + 16 * (part % 2);
        const int bit = static_cast<int>(part / 2);
        two_bits(from + 32 + 32 * (part / 8) + 16 * (part % 2),
                 static_cast<int>(2 * (part / 2 % 4)), to, [=](std::size_t i, int q) {
                     const int offset = (~(high_bits[i] >> bit) & 1) << 2;
                     return scale * static_cast<float>(q - offset);
                 });
    }
}

/// d, dmin, 12 bytes of scales and minima, of Q5_K 32 bytes of fifth bits, 128 bytes of values: 32
/// bytes hold 32 values in their low halves and the next 32 in their high halves. Bit b of a fifth
/// byte i is of value 32 b + i.
template <bool has_fifth>
void decode_k(const Byte* from, float* to) {
    const float d = half_at(from), dmin = half_at(from + 2);
    const Byte* __restrict fifth = from + 16;
    const Byte* __restrict packed = from + (has_fifth ? 48 : 16);
    for (std::size_t part = 0; part < 8; ++part, to += 32) {
        const auto [scale, min] = scale_and_min(from + 4, part, d, dmin);
        float* __restrict out = to;
        for (std::size_t i = 0; i < 32; ++i) {
            int q = packed[32 * (part / 2) + i] >> 4 * (part % 2) & 15;
            if constexpr (has_fifth) q |= (fifth[i] >> part & 1) << 4;
            out[i] = scale * static_cast<float>(q) - min;
        }
    }
}

/// 128 bytes of low halves, 64 bytes of pairs of high bits, 16 signed scales, d. Value 128 a + 32 b
/// + i: byte 64 a + 32 (b mod 2) + i, its low half if b < 2; bits 2 b of high byte 32 a + i.
void decode_q6_k(const Byte* from, float* to) {
    const float d = half_at(from + 208);
    for (std::size_t half = 0; half < 2; ++half, to += 128) {
        const Byte *low = from + 64 * half, *high = from + 128 + 32 * half,
                   *scales = from + 192 + 8 * half;
        quarter_of_q6_k<0, 0>(low, high, scales, d, to);
        quarter_of_q6_k<0, 2>(low + 32, high, scales + 2, d, to + 32);
        quarter_of_q6_k<4, 4>(low, high, scales + 4, d, to + 64);
        quarter_of_q6_k<4, 6>(low + 32, high, scales + 6, d, to + 96);
    }
}

void decode_iq4_nl(const Byte* from, float* to) {
    const float d = half_at(from);
    split_halves<16>(from + 2, to,
                     [d](int q) { return d * nonlinear_levels[static_cast<std::size_t>(q)]; });
}

/// d, two bytes with the high two bits of eight scales, four bytes with their low halves, eight
/// times 16 bytes.
void decode_iq4_xs(const Byte* from, float* to) {
    const float d = half_at(from);
    const int high_bits = from[2] | from[3] << 8;
    for (std::size_t part = 0; part < 8; ++part, to += 32) {
        const int low = from[4 + part / 2] >> 4 * (part % 2) & 15;
        const int high = high_bits >> 2 * part & 3;
        const float scale = d * static_cast<float>((low | high << 4) - 32);
        split_halves<16>(from + 8 + 16 * part, to, [scale](int q) {
            return scale * nonlinear_levels[static_cast<std::size_t>(q)];
        });
    }
}

/// An exponent e, 16 bytes: 2^(e - 128) times the level. ggml has no NaN among the exponents.
void decode_mxfp4(const Byte* from, float* to) {
    const float d = from[0] == 0 ? 0x1p-128f : float_of_e8m0(static_cast<Byte>(from[0] - 1));
    split_halves<16>(from + 1, to,
                     [d](int q) { return d * mxfp4_levels[static_cast<std::size_t>(q)]; });
}

template <std::size_t values, std::size_t bytes, void decode_block(const Byte*, float*)>
constexpr GgmlType in_blocks(std::uint32_t number, std::string_view name) {
    constexpr auto decode = [](const Byte* from, std::size_t blocks, float* to) {
        for (; blocks-- > 0; from += bytes, to += values) decode_block(from, to);
    };
    return {number, name, values, bytes, std::nullopt, decode};
}

constexpr GgmlType plain(std::uint32_t number, NumberType type) {
    return {number, row_of(type).safetensors, 1, row_of(type).size, type, nullptr};
}

constexpr std::optional<NumberType> of_blocks = std::nullopt;

/// Those without a size were removed from ggml; their names remain.
constexpr std::array<GgmlType, 42> ggml_types{{
    plain(0, NumberType::float32),
    plain(1, NumberType::float16),
    plain(30, NumberType::bfloat16),
    plain(28, NumberType::float64),
    plain(24, NumberType::int8),
    plain(25, NumberType::int16),
    plain(26, NumberType::int32),
    plain(27, NumberType::int64),
    in_blocks<32, 18, decode_q<false, false>>(2, "Q4_0"),
    in_blocks<32, 20, decode_q<true, false>>(3, "Q4_1"),
    in_blocks<32, 22, decode_q<false, true>>(6, "Q5_0"),
    in_blocks<32, 24, decode_q<true, true>>(7, "Q5_1"),
    in_blocks<32, 34, decode_q8_0>(8, "Q8_0"),
    in_blocks<256, 84, decode_q2_k>(10, "Q2_K"),
    in_blocks<256, 110, decode_q3_k>(11, "Q3_K"),
    in_blocks<256, 144, decode_k<false>>(12, "Q4_K"),
    in_blocks<256, 176, decode_k<true>>(13, "Q5_K"),
    in_blocks<256, 210, decode_q6_k>(14, "Q6_K"),
    in_blocks<32, 18, decode_iq4_nl>(20, "IQ4_NL"),
    in_blocks<256, 136, decode_iq4_xs>(23, "IQ4_XS"),
    in_blocks<32, 17, decode_mxfp4>(39, "MXFP4"),
    {4, "Q4_2", 0, 0, of_blocks, nullptr},
    {5, "Q4_3", 0, 0, of_blocks, nullptr},
    {9, "Q8_1", 32, 36, of_blocks, nullptr},
    {15, "Q8_K", 256, 292, of_blocks, nullptr},
    {16, "IQ2_XXS", 256, 66, of_blocks, nullptr},
    {17, "IQ2_XS", 256, 74, of_blocks, nullptr},
    {18, "IQ3_XXS", 256, 98, of_blocks, nullptr},
    {19, "IQ1_S", 256, 50, of_blocks, nullptr},
    {21, "IQ3_S", 256, 110, of_blocks, nullptr},
    {22, "IQ2_S", 256, 82, of_blocks, nullptr},
    {29, "IQ1_M", 256, 56, of_blocks, nullptr},
    {31, "Q4_0_4_4", 0, 0, of_blocks, nullptr},
    {32, "Q4_0_4_8", 0, 0, of_blocks, nullptr},
    {33, "Q4_0_8_8", 0, 0, of_blocks, nullptr},
    {34, "TQ1_0", 256, 54, of_blocks, nullptr},
    {35, "TQ2_0", 256, 66, of_blocks, nullptr},
    {36, "IQ4_NL_4_4", 0, 0, of_blocks, nullptr},
    {37, "IQ4_NL_4_8", 0, 0, of_blocks, nullptr},
    {38, "IQ4_NL_8_8", 0, 0, of_blocks, nullptr},
    {40, "NVFP4", 64, 36, of_blocks, nullptr},
    {41, "Q1_0", 128, 18, of_blocks, nullptr},
}};

class BlockDequantiser : public Dequantiser {
public:
    BlockDequantiser(std::shared_ptr<const Bytes> bytes, std::uint64_t offset, const GgmlType& type)
        : bytes_(std::move(bytes)), offset_(offset), type_(type) {}

    void read(std::size_t first, std::size_t count, float* to) const override {
        const std::size_t values = type_.values;
        std::vector<char> buffer;
        std::array<float, max_block_values> block;
        while (count != 0) {
            const std::size_t skip = first % values;
            const bool is_part = skip != 0 || count < values;
            const std::size_t now =
                is_part ? std::min(count, values - skip) : count - count % values;
            read_blocks(first / values, is_part ? 1 : now / values, buffer,
                        is_part ? block.data() : to);
            if (is_part) std::copy_n(block.data() + skip, now, to);
            first += now;
            to += now;
            count -= now;
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
    return find_row(ggml_types, &GgmlType::number, number);
}

const GgmlType* find_ggml_type(std::string_view name) {
    return find_row(ggml_types, &GgmlType::name, name);
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
