// PyTorch's CPU random stream; see torch_random.hpp for the source of every formula.
#include "core/base/torch_random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace attn {
namespace {

/// The twist of one word: the top bit of `word` and the other bits of its successor, shifted.
std::uint32_t twisted(std::uint32_t word, std::uint32_t successor) {
    const std::uint32_t y = (word & 0x80000000u) | (successor & 0x7fffffffu);
    return (y >> 1) ^ (-(y & 1) & 0x9908b0dfu);
}

std::uint32_t tempered(std::uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
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

/// The first states of the seeds that were asked for last. A batch asks for one seed again and
/// again, or for seed after seed: then the next ones are made along with it, as the steps of one
/// chain wait for each other and those of several chains do not.
template <std::size_t size>
class SeededStates {
public:
    const std::array<std::uint32_t, size>& of(std::uint32_t seed) {
        const bool is_next = seed == last_ + 1;
        last_ = seed;
        if (seed - first_ >= count_) {
            first_ = seed;
            count_ = is_next ? states_.size() : 1;
            is_next ? make<at_once>() : make<1>();
        }
        return states_[seed - first_];
    }

private:
    template <std::size_t seeds>
    void make() {
        std::array<std::uint32_t, seeds> words{};
        for (std::uint32_t s = 0; s < seeds; ++s) states_[s][0] = words[s] = first_ + s;
        for (std::uint32_t i = 1; i < size; ++i)
            for (std::size_t s = 0; s < seeds; ++s)
                states_[s][i] = words[s] = 1812433253u * (words[s] ^ (words[s] >> 30)) + i;
    }

    static constexpr std::size_t at_once = 8;
    std::array<std::array<std::uint32_t, size>, at_once> states_;
    std::uint32_t first_ = 0, last_ = 0;
    std::size_t count_ = 0;  // of seeds, from `first_` on
};

}  // namespace

Mt19937::Mt19937(std::uint32_t seed) {
    thread_local SeededStates<block_size> states;
    std::ranges::copy(states.of(seed), state_);
}

// In three ranges, so that no word is read within a vector's length of where it was written.
void Mt19937::twist(std::size_t first, std::size_t end) {
    constexpr std::size_t ahead = 397;
    constexpr std::size_t behind = block_size - ahead;
    std::size_t i = first;
    for (; i < std::min(end, behind); ++i)
        state_[i] = state_[i + ahead] ^ twisted(state_[i], state_[i + 1]);
    for (; i < std::min(end, block_size - 1); ++i)
        state_[i] = state_[i - behind] ^ twisted(state_[i], state_[i + 1]);
    if (i < end) state_[i] = state_[i - behind] ^ twisted(state_[i], state_[0]);
}

void Mt19937::make_more() {
    const std::size_t first = made_ % block_size;
    made_ = first + part_size;
    twist(first, made_);
    for (std::size_t i = first; i < made_; ++i) outputs_[i] = tempered(state_[i]);
    next_ = first;
}

void Mt19937::fill(std::span<std::uint32_t> out) {
    while (!out.empty()) {
        if (next_ == made_) make_more();
        const std::size_t taken = std::min(out.size(), made_ - next_);
        std::copy_n(outputs_ + next_, taken, out.begin());
        next_ += taken;
        out = out.subspan(taken);
    }
}

void Mt19937::skip(std::uint64_t count) {
    while (count > made_ - next_) {
        count -= made_ - next_;
        if (made_ == block_size)
            for (; count > block_size; count -= block_size) twist(0, block_size);
        make_more();
    }
    next_ += count;
}

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
T NormalStream<T>::element(std::uint64_t index) {
    if (count_ < block_size) {
        T value{};
        for (; drawn_ <= index; ++drawn_) value = static_cast<T>(generator_.normal());
        return value;
    }
    // Where count is no multiple of 16, PyTorch fills the last 16 places a second time, from 16
    // fresh uniforms drawn after all the others.
    const std::uint64_t ragged = count_ % block_size;
    const bool in_tail = ragged != 0 && index >= count_ - block_size;
    const std::uint64_t offset = in_tail ? index - (count_ - block_size) : index % block_size;
    load_block(in_tail ? count_ : index - offset);
    return block_[offset];
}

template <class T>
void NormalStream<T>::load_block(std::uint64_t first_draw) {
    if (loaded_ == first_draw) return;
    constexpr std::uint64_t draws_per_uniform = sizeof(T) / sizeof(std::uint32_t);
    generator_.skip((first_draw - drawn_) * draws_per_uniform);
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

void Mcg31::fill(std::span<std::uint32_t> out) {
    // Elements as multiples of the first one do not wait for each other.
    static constexpr auto powers = [] {
        std::array<std::uint32_t, 65> table{1};
        for (std::size_t i = 1; i < table.size(); ++i) table[i] = times(table[i - 1], multiplier);
        return table;
    }();
    while (!out.empty()) {
        const std::size_t count = std::min(out.size(), powers.size() - 1);
        const std::uint32_t first = x_;
        for (std::size_t i = 0; i < count; ++i) out[i] = times(first, powers[i]);
        x_ = times(first, powers[count]);
        out = out.subspan(count);
    }
}

void Mcg31::skip(std::uint64_t count) {
    std::uint32_t power = multiplier;
    for (; count != 0; count >>= 1) {
        if (count & 1) x_ = times(x_, power);
        power = times(power, power);
    }
}

}  // namespace attn
