#include "core/base/torch_random.hpp"

#include <numbers>

namespace attn {
namespace {

/// a * b mod 2^31 - 1, for factors in [1, 2^31 - 2]. 2^31 is congruent to 1, so the high bits are
/// added to the low ones: once leaves less than twice the modulus, twice the residue, which is not
/// 0 as the modulus is prime.
constexpr std::uint32_t times(std::uint32_t a, std::uint32_t b) {
    std::uint64_t x = std::uint64_t{a} * b;
    x = (x & Mcg31::modulus) + (x >> 31);
    x = (x & Mcg31::modulus) + (x >> 31);
    return static_cast<std::uint32_t>(x);
}

}  // namespace

double TorchGenerator::normal() {
    if (spare_normal_) {
        const double value = *spare_normal_;
        spare_normal_.reset();
        return value;
    }
    const double u1 = uniform01<double>();
    const double u2 = uniform01<double>();
    const double radius = std::sqrt(-2.0 * std::log1p(-u2));
    const double theta = 2.0 * std::numbers::pi * u1;
    spare_normal_ = radius * std::sin(theta);
    return radius * std::cos(theta);
}

template <class T>
void NormalStream<T>::read(std::uint64_t first, std::span<T> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = element(first + i);
}

template <class T>
std::uint64_t NormalStream<T>::draws(std::uint64_t count) {
    // Few elements are drawn in pairs, each from two float64 uniforms. A last odd one takes both.
    if (count < block_size) return (count + 1) / 2 * 2 * TorchGenerator::draws_per_uniform<double>;
    const std::uint64_t again = count % block_size == 0 ? 0 : block_size;
    return (count + again) * TorchGenerator::draws_per_uniform<T>;
}

template <class T>
T NormalStream<T>::element(std::uint64_t index) {
    if (count_ < block_size) {
        T value{};
        for (; drawn_ <= index; ++drawn_) value = static_cast<T>(generator_.normal());
        return value;
    }
    // If count is not a multiple of 16, PyTorch fills the last 16 elements a second time, from 16
    // fresh uniforms drawn after all others.
    const std::uint64_t ragged = count_ % block_size;
    const bool in_tail = ragged != 0 && index >= count_ - block_size;
    const std::uint64_t offset = in_tail ? index - (count_ - block_size) : index % block_size;
    load_block(in_tail ? count_ : index - offset);
    return block_[offset];
}

template <class T>
void NormalStream<T>::load_block(std::uint64_t first_draw) {
    if (loaded_ == first_draw) return;
    generator_.skip((first_draw - drawn_) * TorchGenerator::draws_per_uniform<T>);
    for (T& u : block_) u = generator_.template uniform01<T>();
    drawn_ = first_draw + block_size;
    loaded_ = first_draw;
    for (std::size_t j = 0; j < block_size / 2; ++j) {
        const T u1 = 1 - block_[j];  // (0, 1], so that the logarithm is finite
        const double radius = std::sqrt(-2.0 * std::log(static_cast<double>(u1)));
        const double theta = 2.0 * std::numbers::pi * static_cast<double>(block_[j + 8]);
        block_[j] = static_cast<T>(radius * std::cos(theta));
        block_[j + 8] = static_cast<T>(radius * std::sin(theta));
    }
}

template class NormalStream<float>;
template class NormalStream<double>;

Mcg31::Mcg31(std::uint32_t seed) : x_(seed % modulus) {
    if (x_ == 0) x_ = 1;
}

double Mcg31::next() {
    const double value = static_cast<double>(x_) / modulus;
    x_ = times(x_, multiplier);
    return value;
}

constexpr std::array<std::uint32_t, 65> Mcg31::powers = [] {
    std::array<std::uint32_t, 65> table{1};
    for (std::size_t i = 1; i < table.size(); ++i) table[i] = times(table[i - 1], multiplier);
    return table;
}();

void Mcg31::skip(std::uint64_t count) {
    if (count < powers.size()) {
        x_ = times(x_, powers[count]);
        return;
    }
    std::uint32_t power = multiplier;
    for (; count != 0; count >>= 1) {
        if (count & 1) x_ = times(x_, power);
        power = times(power, power);
    }
}

}  // namespace attn
