// PyTorch's CPU random stream: the MT19937 generator and the draws that PyTorch makes from it.
//
// Source: aten/src/ATen/core/MT19937RNGEngine.h, TransformationHelper.h, DistributionTemplates.h
// and MKL's VSL notes for the second dropout stream; every fact was also measured (data/README.md).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>

namespace attn {

/// PyTorch's CPU generator after `torch.manual_seed(seed)`. Only the low 32 bits of the seed count.
class TorchGenerator {
public:
    explicit TorchGenerator(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

    /// One tempered output of MT19937.
    std::uint32_t draw32() { return engine_(); }

    /// Two outputs, the first one in the high half.
    std::uint64_t draw64() {
        const std::uint64_t high = draw32();
        return (high << 32) | draw32();
    }

    /// Throws away `count` 32-bit draws; linear in count, about 2 ns each.
    void skip(std::uint64_t count) { engine_.discard(count); }

    /// `torch.rand(1)` in T: 24 random bits for float (one draw32), 53 for double (one draw64).
    template <class T>
    T uniform01() {
        if constexpr (sizeof(T) == sizeof(float))
            return static_cast<T>(draw32() & ((1u << 24) - 1)) * T{0x1p-24};
        else
            return static_cast<T>(draw64() & ((std::uint64_t{1} << 53) - 1)) * T{0x1p-53};
    }

    /// `tensor.uniform_(low, high)`, one element: low and high are rounded to T, then
    /// fma(u, high - low, low) with a single rounding, as PyTorch's x86-64 and arm64 builds do.
    template <class T>
    T uniform(double low, double high) {
        const T a = static_cast<T>(low);
        const T b = static_cast<T>(high);
        return std::fma(uniform01<T>(), b - a, a);
    }

    /// True with probability p: one draw64.
    bool bernoulli(double p) { return uniform01<double>() < p; }

    /// A standard normal from the polar pair that torch.randn uses below 16 elements: every second
    /// call draws two 53-bit uniforms, the call after it returns the pair's other half.
    double normal();

private:
    // PyTorch keeps 32-bit state words; libstdc++'s std::mt19937 would spend 64 bits on each.
    using Mt19937 =
        std::mersenne_twister_engine<std::uint32_t, 32, 624, 397, 31, 0x9908b0df, 11, 0xffffffff, 7,
                                     0x9d2c5680, 15, 0xefc60000, 18, 1812433253>;
    Mt19937 engine_;
    std::optional<double> spare_normal_;
};

/// torch.randn(count) read from the front, without storing what is not wanted: rows of a large
/// nn.Embedding cost the memory of those rows. Values are standard normals in T; float32 values
/// agree with PyTorch's vectorised x86 builds within 2e-6, float64 values to libm's last bit.
template <class T>
class NormalStream {
public:
    /// Starts where `generator` stands; `count` is the size of the whole tensor.
    NormalStream(TorchGenerator generator, std::uint64_t count)
        : generator_(generator), count_(count) {}

    /// Writes elements [first, first + out.size()) of the tensor. Calls must come in rising order
    /// and may not overlap; first + out.size() <= count.
    void read(std::uint64_t first, std::span<T> out);

private:
    T element(std::uint64_t index);
    void load_block(std::uint64_t first_draw);

    static constexpr std::uint64_t block_size = 16;

    TorchGenerator generator_;
    std::uint64_t count_;
    std::uint64_t drawn_ = 0;              // elements drawn so far
    std::optional<std::uint64_t> loaded_;  // the draw that block_ starts at
    T block_[block_size] = {};
};

/// MKL's MCG31 stream, which PyTorch builds with MKL use for dropout: x <- a x mod (2^31 - 1).
class Mcg31 {
public:
    /// Takes its seed from one draw32 of the main generator.
    explicit Mcg31(std::uint32_t seed);

    /// The current element, in (0, 1), then one step on.
    double next();

    /// Moves on by `count` elements in O(log count).
    void skip(std::uint64_t count);

private:
    static constexpr std::uint64_t modulus = 0x7fffffff;
    static constexpr std::uint64_t multiplier = 1132489760;
    std::uint64_t x_;
};

}  // namespace attn
