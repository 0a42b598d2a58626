// What generated questions draw from a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>

namespace attn::test {

class Dice {
public:
    explicit Dice(std::uint32_t seed) : engine_(seed) {}

    std::size_t below(std::size_t n) { return engine_() % n; }
    std::size_t size(std::size_t least, std::size_t most) {
        return least + below(most - least + 1);
    }
    bool one_in(std::size_t n) { return below(n) == 0; }
    bool chance(unsigned percent) { return below(100) < percent; }
    double uniform(double low, double high) {
        return low + (high - low) * static_cast<double>(engine_()) * 0x1p-32;
    }
    template <class X>
    X among(std::initializer_list<X> all) {
        return all.begin()[below(all.size())];
    }

private:
    std::mt19937 engine_;
};

}  // namespace attn::test
