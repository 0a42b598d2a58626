#include "core/base/cuda_random.hpp"

#include <algorithm>
#include <numbers>

namespace attn {
namespace {

/// The words of an element's counter, and the first that is its own.
struct CudaDraw {
    std::array<std::uint32_t, 4> words;
    std::size_t at;
};

CudaDraw draw(const CudaGenerator& generator, std::uint64_t i, std::uint64_t count,
              unsigned words) {
    const PhiloxRun run = generator.run(i, count, words);
    return {run.words(), CudaGenerator::word_of(run, words)};
}

/// 53 bits of the words from `at` on.
std::uint64_t bits53(const std::array<std::uint32_t, 4>& words, std::size_t at) {
    return words[at] ^ std::uint64_t{words[at + 1]} << 21;
}

/// In (0, 1].
template <class T>
T uniform01(const CudaDraw& draw) {
    const auto& [words, at] = draw;
    if constexpr (sizeof(T) == sizeof(float))
        return cuda_uniform(words[at]);
    else
        return static_cast<double>(bits53(words, at)) * 0x1p-53 + 0x1p-54;
}

/// The product of two positive numbers, rounded toward 0.
float product_toward_zero(float a, float b) {
    const double exact = double{a} * double{b};
    const auto nearest = static_cast<float>(exact);
    return double{nearest} > exact ? std::nextafter(nearest, 0.0f) : nearest;
}

/// Box-Muller: of two words each a sine first, then a cosine; of four words in float64.
template <class T>
T standard_normal(const CudaDraw& draw) {
    const auto& [words, at] = draw;
    if constexpr (sizeof(T) == sizeof(float)) {
        const std::size_t pair = at / 2 * 2;
        constexpr float step = 2.3283064e-10f * 6.2831855f;
        const float angle = std::fma(static_cast<float>(words[pair + 1]), step, step / 2);
        const auto logarithm = static_cast<float>(std::log(double{cuda_uniform(words[pair])}));
        // A GPU's sine is of an angle in turns.
        const double theta = 2 * std::numbers::pi * double{product_toward_zero(angle, 0.15915494f)};
        return std::sqrt(-2.0f * logarithm) *
               static_cast<float>(at == pair ? std::sin(theta) : std::cos(theta));
    } else {
        const double radius = std::sqrt(-2.0 * std::log(uniform01<double>({words, 0}))),
                     theta = std::numbers::pi *
                             (static_cast<double>(bits53(words, 2)) * 0x1p-52 + 0x1p-53);
        return radius * (at == 0 ? std::sin(theta) : std::cos(theta));
    }
}

}  // namespace

template <class T>
void CudaGenerator::uniform(double low, double high, std::span<T> out, NumberType type) {
    const auto round = [&](T x) { return is_rounded(type) ? rounded(x, type) : x; };
    const T a = round(static_cast<T>(low)), b = round(static_cast<T>(high)), width = round(b - a);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const T u = uniform01<T>(draw(*this, i, out.size(), cuda_words<T>));
        const T number = round(std::fma(u, width, a));
        out[i] = number == b ? a : number;
    }
    finish(out.size(), cuda_words<T>);
}

template <class T>
void CudaGenerator::normal(double mean, double std, std::uint64_t first, std::uint64_t count,
                           std::span<T> out, NumberType type) {
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = std::fma(standard_normal<T>(draw(*this, first + i, count, cuda_words<T>)),
                          static_cast<T>(std), static_cast<T>(mean));
    round_all(out, type);
    finish(count, cuda_words<T>);
}

template <class T>
void CudaGenerator::integers(std::int64_t low, std::uint64_t n, std::span<T> out) {
    const unsigned used = cuda_words_below(n);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const auto [words, at] = draw(*this, i, out.size(), used);
        const std::uint64_t number =
            used == 1 ? words[at] : std::uint64_t{words[at]} << 32 | words[at + 1];
        out[i] = static_cast<T>(low + static_cast<std::int64_t>(number % n));
    }
    finish(out.size(), used);
}

template void CudaGenerator::uniform(double, double, std::span<float>, NumberType);
template void CudaGenerator::uniform(double, double, std::span<double>, NumberType);
template void CudaGenerator::normal(double, double, std::uint64_t, std::uint64_t, std::span<float>,
                                    NumberType);
template void CudaGenerator::normal(double, double, std::uint64_t, std::uint64_t, std::span<double>,
                                    NumberType);
template void CudaGenerator::integers(std::int64_t, std::uint64_t, std::span<float>);
template void CudaGenerator::integers(std::int64_t, std::uint64_t, std::span<double>);

}  // namespace attn
