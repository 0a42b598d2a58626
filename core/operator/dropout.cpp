// PyTorch's dropout masks; see dropout.hpp.
#include "core/operator/dropout.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

namespace attn {
namespace {

constexpr std::size_t word_bits = 64;

/// x / modulus in double is below keep_probability for the x below this limit and for no others:
/// rounding keeps quotients in order, so that halving finds the limit.
std::uint32_t mkl_limit(double keep_probability) {
    std::uint32_t low = 0, high = Mcg31::modulus;
    while (low < high) {
        const std::uint32_t middle = low + (high - low) / 2;
        if (static_cast<double>(middle) / Mcg31::modulus < keep_probability)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void decide(TorchGenerator& generator, std::uint64_t limit, std::span<std::uint8_t> kept) {
    std::array<std::uint32_t, 2 * word_bits> halves;
    generator.fill32(std::span(halves).first(2 * kept.size()));
    // By halves, as baseline x86-64 compares no vectors of 64-bit numbers.
    const auto limit_high = static_cast<std::uint32_t>(limit >> 32);
    const auto limit_low = static_cast<std::uint32_t>(limit);
    for (std::size_t i = 0; i < kept.size(); ++i) {
        const std::uint32_t high = halves[2 * i] & 0x1fffff, low = halves[2 * i + 1];
        kept[i] = (high < limit_high) | ((high == limit_high) & (low < limit_low));
    }
}

void decide(Mcg31& mkl, std::uint64_t limit, std::span<std::uint8_t> kept) {
    std::array<std::uint32_t, word_bits> draws;
    mkl.fill(std::span(draws).first(kept.size()));
    const auto limit32 = static_cast<std::uint32_t>(limit);
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = draws[i] < limit32;
}

/// Bit i of the word is kept[i], a 0 or a 1.
std::uint64_t packed(const std::array<std::uint8_t, word_bits>& kept) {
    // The top byte of eight bytes times this holds the low bit of each, the first byte's lowest.
    constexpr std::uint64_t gather =
        std::endian::native == std::endian::little ? 0x0102040810204080 : 0x8040201008040201;
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < word_bits; i += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, kept.data() + i, sizeof eight);
        word |= (eight * gather >> 56) << i;
    }
    return word;
}

}  // namespace

KeepBits::KeepBits(double p, DropoutStream stream, TorchGenerator generator)
    : generator_(generator) {
    const double keep_probability = 1 - p;
    if (stream == DropoutStream::mkl) {
        mkl_.emplace(generator_.draw32());
        limit_ = mkl_limit(keep_probability);
    } else {
        limit_ = static_cast<std::uint64_t>(std::ceil(keep_probability * 0x1p53));
    }
}

void KeepBits::next(std::uint64_t* bits, std::size_t count) {
    while (count != 0) {
        std::array<std::uint8_t, word_bits> kept{};
        const auto drawn = std::span(kept).first(std::min(count, word_bits));
        if (mkl_)
            decide(*mkl_, limit_, drawn);
        else
            decide(generator_, limit_, drawn);
        *bits++ = packed(kept);
        count -= drawn.size();
    }
}

void KeepBits::skip(std::uint64_t count) {
    if (mkl_)
        mkl_->skip(count);
    else
        generator_.skip(2 * count);
}

// Swaps the two off-diagonal quarters of the whole, then of each quarter, down to single bits
// (Warren, Hacker's Delight, 2nd ed., 7-3).
void transpose_bits(std::uint64_t block[64]) {
    std::uint64_t low = 0xffffffff;  // the lower `half` bits of every 2 * half
    for (std::size_t half = 32; half != 0; half /= 2, low ^= low << half)
        for (std::size_t top = 0; top < word_bits; top += 2 * half)
            for (std::size_t r = top; r < top + half; ++r) {
                const std::uint64_t swapped = ((block[r] >> half) ^ block[r + half]) & low;
                block[r] ^= swapped << half;
                block[r + half] ^= swapped;
            }
}

template <class T>
Tensor4<T> dropout_mask(double p, DropoutStream stream, const DropoutExtent& extent,
                        TorchGenerator& generator) {
    Tensor4<T> mask =
        Tensor4<T>::from_shape({extent.outer, extent.inner, extent.kept_rows, extent.columns});
    if (p == 0 || p == 1) {
        mask.fill(p == 0 ? T{1} : T{0});
        return mask;
    }
    // PyTorch divides the mask of ones by 1 - p in the tensor's own type.
    const T values[] = {T{0}, T{1} / static_cast<T>(1 - p)};
    const std::size_t kept = extent.kept_rows * extent.columns;
    const std::size_t before = extent.first_row * extent.columns;
    const std::size_t after = extent.rows * extent.columns - before - kept;
    KeepBits keep(p, stream, generator);
    T* out = mask.data();
    for (std::size_t matrix = 0; matrix < extent.outer * extent.inner; ++matrix) {
        keep.skip(before);
        for (std::size_t done = 0; done < kept; done += word_bits) {
            const std::size_t count = std::min(word_bits, kept - done);
            std::uint64_t word;
            keep.next(&word, count);
            for (std::size_t i = 0; i < count; ++i, word >>= 1) *out++ = values[word & 1];
        }
        keep.skip(after);
    }
    generator = keep.generator();
    return mask;
}

template <class T>
Tensor4<T> dropout_mask(const Dropout& d, std::size_t first_query,
                        const std::array<std::size_t, 4>& shape) {
    const auto [batch, heads, rows, keys] = shape;
    TorchGenerator generator = d.generator.value_or(TorchGenerator(0));
    DropoutExtent extent{batch, heads, d.q_len, keys, first_query, rows};
    if (!d.head_by_head) return dropout_mask<T>(d.p, d.stream, extent, generator);
    Tensor4<T> mask = Tensor4<T>::from_shape(shape);
    extent.inner = 1;
    const std::size_t matrix = rows * keys;
    for (std::size_t head = 0; head < heads; ++head) {
        const Tensor4<T> one = dropout_mask<T>(d.p, d.stream, extent, generator);
        for (std::size_t b = 0; b < batch; ++b)
            std::copy_n(one.data() + b * matrix, matrix, mask.data() + (b * heads + head) * matrix);
    }
    return mask;
}

template Tensor4<float> dropout_mask(double, DropoutStream, const DropoutExtent&, TorchGenerator&);
template Tensor4<double> dropout_mask(double, DropoutStream, const DropoutExtent&, TorchGenerator&);

template Tensor4<float> dropout_mask(const Dropout&, std::size_t,
                                     const std::array<std::size_t, 4>&);
template Tensor4<double> dropout_mask(const Dropout&, std::size_t,
                                      const std::array<std::size_t, 4>&);

}  // namespace attn
