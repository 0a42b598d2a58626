#include "core/base/torch_random.hpp"

#include <bit>
#include <numbers>
#include <utility>

namespace attn {
namespace {

/// A polynomial in x by Horner's rule, from the highest coefficient.
template <std::size_t n>
float horner(const float (&coefficients)[n], float x) {
    float sum = coefficients[0];
    for (std::size_t i = 1; i < n; ++i) sum = std::fma(sum, x, coefficients[i]);
    return sum;
}

/// The radius and the angle of a pair of normals, as sqrt(-2 ln u), cos(2 pi v) and sin(2 pi v).
template <class T>
struct PolarPair {
    T radius, cosine, sine;
};

template <class T>
PolarPair<T> polar_pair(T u, T v) {
    const T theta = T{2} * std::numbers::pi_v<T> * v;
    return {std::sqrt(T{-2} * std::log(u)), std::cos(theta), std::sin(theta)};
}

/// In float32 PyTorch's kernel for AVX2 calls the vectorised functions of Cephes. The sums here
/// have the products that its builds contract to one rounding. Source:
/// aten/src/ATen/native/cpu/avx_mathfun.h, DistributionTemplates.h.
template <>
PolarPair<float> polar_pair(float u, float v) {
    // ln: u = x 2^e, with x - 1 in [sqrt(1/2) - 1, sqrt(2) - 1).
    const auto bits = std::bit_cast<std::uint32_t>(u);
    float e = static_cast<float>(static_cast<int>(bits >> 23) - 126);
    float x = std::bit_cast<float>((bits & 0x007fffffu) | 0x3f000000u);
    const bool is_low = x < std::numbers::sqrt2_v<float> / 2;
    if (is_low) e -= 1;
    x = x - 1 + (is_low ? x : 0);
    constexpr float log_terms[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                   -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                   2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
    constexpr float ln2_low = -2.12194440e-4f, ln2_high = 0.693359375f;
    const float square = x * x;
    float y = std::fma(horner(log_terms, x) * x, square, e * ln2_low);
    y = std::fma(-square, 0.5f, y);
    const float logarithm = std::fma(e, ln2_high, x + y);

    // The angle is an octant, an even number, and a rest in [-pi/4, pi/4].
    const float theta = 2 * std::numbers::pi_v<float> * v;
    const int octant = (static_cast<int>(theta * 1.27323954473516f) + 1) & ~1;
    float rest = theta;
    for (const float part : {-0.78515625f, -2.4187564849853515625e-4f, -3.77489497744594108e-8f})
        rest = std::fma(static_cast<float>(octant), part, rest);
    constexpr float cosine_terms[] = {2.443315711809948e-5f, -1.388731625493765e-3f,
                                      4.166664568298827e-2f};
    constexpr float sine_terms[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
    const float z = rest * rest, half = z * 0.5f;
    const float cosine = std::fma(horner(cosine_terms, z) * z, z, -half) + 1;
    const float sine = std::fma(horner(sine_terms, z) * z, rest, rest);
    const bool is_swapped = (octant & 2) != 0;
    const float cos_of_theta = is_swapped ? sine : cosine,
                sin_of_theta = is_swapped ? cosine : sine;
    return {std::sqrt(-2.0f * logarithm), ((octant + 2) & 4) != 0 ? -cos_of_theta : cos_of_theta,
            (octant & 4) != 0 ? -sin_of_theta : sin_of_theta};
}

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
    if (spare_normal_) return *std::exchange(spare_normal_, {});
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
    round_all(out, type_);
}

template <class T>
T NormalStream<T>::element(std::uint64_t index) {
    if (count_ < block_size) {
        T value{};
        for (; drawn_ <= index; ++drawn_)
            value = static_cast<T>(std::fma(generator_.normal(), std_, mean_));
        return value;
    }
    // If count is not a multiple of 16, PyTorch fills the last 16 elements a second time, from 16
    // fresh uniforms drawn after all others, in bfloat16 and float16 after those of whole blocks.
    const std::uint64_t ragged = count_ % block_size;
    const bool in_tail = ragged != 0 && index >= count_ - block_size;
    const std::uint64_t offset = in_tail ? index - (count_ - block_size) : index % block_size;
    const std::uint64_t drawn_before = is_rounded(type_) ? count_ - ragged : count_;
    load_block(in_tail ? drawn_before : index - offset);
    return block_[offset];
}

template <class T>
void NormalStream<T>::load_block(std::uint64_t first_draw) {
    if (loaded_ == first_draw) return;
    generator_.skip((first_draw - drawn_) * TorchGenerator::draws_per_uniform<T>);
    for (T& u : block_) u = generator_.template uniform01<T>();
    drawn_ = first_draw + block_size;
    loaded_ = first_draw;
    const T mean = static_cast<T>(mean_), std = static_cast<T>(std_);
    for (std::size_t j = 0; j < block_size / 2; ++j) {
        // 1 - u is in (0, 1], so that the logarithm is finite.
        const PolarPair<T> pair = polar_pair(1 - block_[j], block_[j + 8]);
        block_[j] = std::fma(pair.radius * pair.cosine, std, mean);
        block_[j + 8] = std::fma(pair.radius * pair.sine, std, mean);
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
