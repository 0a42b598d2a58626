// PyTorch's CPU random stream: the draws that PyTorch makes from MT19937.
//
// Source: aten/src/ATen/core/MT19937RNGEngine.h, TransformationHelper.h, DistributionTemplates.h
// and MKL's VSL notes for the second dropout stream; every fact was also measured (data/README.md).
#pragma once

#include <cmath>
#include <optional>

#include "core/base/mt19937.hpp"
#include "core/base/number_type.hpp"

namespace attn {

/// PyTorch's CPU generator after `torch.manual_seed(seed)`. Only the low 32 bits of the seed count.
class TorchGenerator {
public:
    explicit TorchGenerator(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

    std::uint32_t draw32() { return engine_.draw(); }
    std::uint64_t draw64() { return engine_.draw64(); }

    /// Skips `count` 32-bit draws, in at most a few milliseconds.
    void skip(std::uint64_t count) { engine_.skip(count); }

    /// 32-bit draws of one uniform number in T.
    template <class T>
    static constexpr std::uint64_t draws_per_uniform = sizeof(T) / sizeof(std::uint32_t);

    /// `torch.rand(1)` in T: 24 random bits for float (one draw32), 53 for double (one draw64).
    template <class T>
    T uniform01() {
        if constexpr (sizeof(T) == sizeof(float))
            return static_cast<T>(draw32() & ((1u << 24) - 1)) * T{0x1p-24};
        else
            return static_cast<T>(draw64() & ((std::uint64_t{1} << 53) - 1)) * T{0x1p-53};
    }

    /// `tensor.uniform_(low, high)`, one element: low and high are rounded to T, then
    /// fma(u, high - low, low) with a single rounding, as PyTorch's x86-64 and arm64 builds do. A
    /// number that is rounded to high becomes low.
    template <class T>
    T uniform(double low, double high) {
        const T a = static_cast<T>(low);
        const T b = static_cast<T>(high);
        const T number = std::fma(uniform01<T>(), b - a, a);
        return number == b ? a : number;
    }

    /// torch.randint(n), n > 0: the rest of one draw, or of two if n is at least 2^28.
    std::uint64_t below(std::uint64_t n) {
        return (n >= (std::uint64_t{1} << 28) ? draw64() : draw32()) % n;
    }

    /// A standard normal from the polar pair that torch.randn uses below 16 elements: every second
    /// call draws two 53-bit uniforms, the call after it returns the pair's other half.
    double normal();

    const Mt19937& engine() const { return engine_; }

private:
    Mt19937 engine_;
    std::optional<double> spare_normal_;
};

/// torch.empty(count).normal_(mean, std) read from the front, without storing skipped elements:
/// rows of a large nn.Embedding take only their own memory. float32 values are those of PyTorch's
/// builds with AVX2 to the last bit, float64 values to libm's.
template <class T>
class NormalStream {
public:
    /// Starts at the position of `generator`; `count` is the size of the whole tensor, and `type`
    /// its type, which elements are rounded to.
    NormalStream(TorchGenerator generator, std::uint64_t count, double mean = 0, double std = 1,
                 NumberType type = NumberType::float32)
        : generator_(generator), count_(count), mean_(mean), std_(std), type_(type) {}

    /// Writes elements [first, first + out.size()) of the tensor. Calls must be in increasing order
    /// and must not overlap; first + out.size() <= count.
    void read(std::uint64_t first, std::span<T> out);

    /// After the last element was read: where the next tensor begins.
    const TorchGenerator& generator() const { return generator_; }

private:
    /// Fewer elements are drawn one by one, and an odd one keeps a normal for the next tensor.
    static constexpr std::uint64_t block_size = 16;

    T element(std::uint64_t index);
    void load_block(std::uint64_t first_draw);

    TorchGenerator generator_;
    std::uint64_t count_;
    double mean_, std_;
    NumberType type_;
    std::uint64_t drawn_ = 0;              // elements drawn so far
    std::optional<std::uint64_t> loaded_;  // the draw that block_ starts at
    T block_[block_size] = {};
};

/// MKL's MCG31 stream, which PyTorch builds with MKL use for dropout: x <- a x mod (2^31 - 1).
class Mcg31 {
public:
    /// Takes its seed from one draw32 of the main generator.
    explicit Mcg31(std::uint32_t seed);

    /// x / modulus of the current element, in (0, 1), then one step on.
    double next();

    /// Of the current element.
    std::uint32_t x() const { return x_; }

    /// Moves on by `count` elements in O(log count).
    void skip(std::uint64_t count);

    static constexpr std::uint32_t modulus = 0x7fffffff;
    static constexpr std::uint32_t multiplier = 1132489760;

    /// The element i steps ahead is x powers[i] mod modulus.
    static const std::array<std::uint32_t, 65> powers;

private:
    std::uint32_t x_;
};

/// Standard deviations of kaiming_normal_(a) and xavier_normal_(gain). The half-widths of the
/// uniform forms are sqrt(3) times these. In double and in this order, since PyTorch computes them
/// so before it rounds them to the tensor's type.
inline double kaiming_deviation(double a, std::size_t fan_in) {
    return std::sqrt(2.0 / (1.0 + a * a)) / std::sqrt(static_cast<double>(fan_in));
}
inline double xavier_deviation(double gain, std::size_t fan_in, std::size_t fan_out) {
    return gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
}

}  // namespace attn
