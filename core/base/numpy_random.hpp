// The draws of NumPy's legacy functions after np.random.seed: np.random.rand, randn, randint,
// uniform, normal.
//
// Source: numpy/random/src/legacy/legacy-distributions.c, numpy/random/src/mt19937/mt19937.h,
// numpy/random/src/distributions/distributions.c.
#pragma once

#include <bit>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/mt19937.hpp"

namespace attn {

/// np.random.RandomState(seed). All numbers are float64, and rounded to T at the end.
class NumpyGenerator {
public:
    explicit NumpyGenerator(std::uint32_t seed) : engine_(seed) {}

    void skip(std::uint64_t count) { engine_.skip(count); }

    /// random_sample(): 53 bits, of two draws.
    template <class T = double>
    T uniform01() {
        const std::uint32_t high = engine_.draw() >> 5, low = engine_.draw() >> 6;
        return static_cast<T>((high * 0x1p26 + low) * 0x1p-53);
    }

    /// uniform(low, high).
    template <class T>
    T uniform(double low, double high) {
        return static_cast<T>(low + (high - low) * uniform01());
    }

    /// randint(n), n > 0: of one draw, or of two if n is beyond 2^32, as many low bits as n - 1
    /// has, again while they are not below n. One number takes no draw.
    std::uint64_t below(std::uint64_t n) {
        const std::uint64_t most = n - 1;
        std::uint64_t bits = most == 0 ? 0 : n;
        while (bits > most)
            bits =
                (most > 0xffffffffu ? engine_.draw64() : engine_.draw()) & (std::bit_ceil(n) - 1);
        return bits;
    }

    /// standard_normal(): a pair by Marsaglia's polar method, whose first half the next call
    /// returns.
    double normal() {
        if (spare_normal_) return *std::exchange(spare_normal_, {});
        double x1 = 0, x2 = 0, square = 0;
        do {
            x1 = 2.0 * uniform01() - 1.0;
            x2 = 2.0 * uniform01() - 1.0;
            square = x1 * x1 + x2 * x2;
        } while (square >= 1.0 || square == 0.0);
        const double factor = std::sqrt(-2.0 * std::log(square) / square);
        spare_normal_ = factor * x1;
        return factor * x2;
    }

    const Mt19937& engine() const { return engine_; }

private:
    Mt19937 engine_;
    std::optional<double> spare_normal_;
};

}  // namespace attn
