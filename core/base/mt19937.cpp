#include "core/base/mt19937.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace attn {
namespace {
namespace mt19937 {

constexpr std::size_t state_words = std::tuple_size_v<Mt19937Words>;
constexpr std::size_t ahead = 397, behind = state_words - ahead;
constexpr std::uint32_t matrix = 0x9908b0df;

/// The twist of one word: the top bit of `word` and the other bits of its successor, shifted.
std::uint32_t twisted(std::uint32_t word, std::uint32_t successor) {
    const std::uint32_t y = (word & 0x80000000u) | (successor & 0x7fffffffu);
    return (y >> 1) ^ (-(y & 1) & matrix);
}

std::uint32_t tempered(std::uint32_t y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

/// Of the characteristic polynomial.
constexpr std::size_t degree = 19937;
constexpr std::size_t residue_words = (degree + 63) / 64;

/// A polynomial over GF(2): bit i % 64 of word i / 64 is the coefficient of x^i. The square of one
/// of a degree below `degree`, times x, fits too.
using Polynomial = std::array<std::uint64_t, 2 * residue_words>;

/// The sum over these d of x^(degree - d) is x^degree modulo the characteristic polynomial
///     a_31 + sum over j from 1 to 32 of a_(31 - j) x^(396 j + 1) (x^227 + 1)^j,
/// where a_i is bit i of `matrix`, and a_(-1) is 1.
/// Source: Matsumoto & Nishimura 1998, "Mersenne Twister", appendix A.
const std::vector<std::size_t>& distances() {
    static const auto found = [] {
        std::array<bool, degree + 1> has_power{};
        has_power[0] = (matrix >> 31) != 0;
        for (std::size_t j = 1; j <= 32; ++j) {
            if (j < 32 && (matrix >> (31 - j) & 1) == 0) continue;
            for (std::size_t i = 0; i <= j; ++i)
                if ((i & ~j) == 0)  // where the binomial coefficient is odd
                    has_power[396 * j + 1 + behind * i] ^= true;
        }
        std::vector<std::size_t> list;
        for (std::size_t d = 1; d <= degree; ++d)
            if (has_power[degree - d]) list.push_back(d);
        return list;
    }();
    return found;
}

/// Words that are reduced together, padded with zeros.
constexpr std::size_t block_words = 8;
using Folded = std::array<std::uint64_t, 1 + block_words + 2>;

/// Adds x^shift times the block.
void add_shifted(Polynomial& to, const Folded& block, std::size_t shift) {
    std::uint64_t* word = to.data() + shift / 64;
    const auto up = static_cast<int>(shift % 64), down = 63 - up;
    for (std::size_t i = 0; i + 1 < block.size(); ++i)
        word[i] ^= block[i + 1] << up | block[i] >> 1 >> down;
}

/// The remainder by the characteristic polynomial. Its second highest power is 623 below the
/// highest, so the replacement of a block of 512 bits is below the block.
void reduce(Polynomial& p) {
    for (std::size_t first = p.size(); first > residue_words;) {
        first -= block_words;
        Folded block{};
        for (std::size_t i = 0; i < block_words; ++i) block[1 + i] = std::exchange(p[first + i], 0);
        for (std::size_t d : distances()) add_shifted(p, block, 64 * first - d);
    }
    std::uint64_t& top = p[residue_words - 1];
    const Folded block{0, top >> (degree % 64)};
    top &= (std::uint64_t{1} << (degree % 64)) - 1;
    for (std::size_t d : distances()) add_shifted(p, block, degree - d);
}

/// Spreads the bits of `word` to the even positions.
std::uint64_t spread(std::uint32_t word) {
    std::uint64_t x = word;
    x = (x | x << 16) & 0x0000ffff0000ffff;
    x = (x | x << 8) & 0x00ff00ff00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
    x = (x | x << 2) & 0x3333333333333333;
    return (x | x << 1) & 0x5555555555555555;
}

/// p becomes p^2, or x p^2, modulo the characteristic polynomial.
void square(Polynomial& p, bool times_x) {
    for (std::size_t i = residue_words; i-- > 0;) {
        const std::uint64_t word = p[i];
        p[2 * i] = spread(static_cast<std::uint32_t>(word));
        p[2 * i + 1] = spread(static_cast<std::uint32_t>(word >> 32));
    }
    if (times_x)  // odd powers do not occur, so none is carried
        for (std::uint64_t& word : p) word <<= 1;
    reduce(p);
}

/// x^exponent modulo the characteristic polynomial.
Polynomial power_of_x(std::uint64_t exponent) {
    int squares = 0;
    while (exponent >> squares >= degree) ++squares;
    const std::uint64_t first = exponent >> squares;
    Polynomial p{};
    p[first / 64] = std::uint64_t{1} << (first % 64);
    while (squares-- > 0) square(p, (exponent >> squares & 1) != 0);
    return p;
}

/// Vector types of the compilers, which do not keep the sums in registers otherwise.
using FourWords [[gnu::vector_size(16)]] = std::uint32_t;

/// Stores in `words` the sum over `powers` of the words from sequence[power] on, in parts.
void add_up(const std::vector<std::uint32_t>& sequence, const std::vector<std::size_t>& powers,
            std::span<std::uint32_t, state_words> words) {
    constexpr std::size_t vectors = 12, part = 4 * vectors;
    static_assert(state_words % part == 0);
    for (std::size_t first = 0; first < state_words; first += part) {
        FourWords sum[vectors] = {};
        for (std::size_t power : powers) {
            const std::uint32_t* from = sequence.data() + power + first;
            for (std::size_t i = 0; i < vectors; ++i) {
                FourWords four;
                std::memcpy(&four, from + 4 * i, sizeof four);
                sum[i] ^= four;
            }
        }
        std::memcpy(&words[first], sum, sizeof sum);
    }
}

/// Caches the initial states of recent seeds. A batch uses one seed repeatedly, or consecutive
/// seeds. Consecutive ones are computed together, since the steps of one chain depend on each other
/// and those of several chains do not.
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

}  // namespace mt19937
}  // namespace

void jump(std::span<std::uint32_t, 624> words, std::uint64_t count) {
    using namespace mt19937;
    const Polynomial p = power_of_x(count);
    std::vector<std::size_t> powers;
    powers.reserve(degree);
    for (std::size_t i = 0; i < degree; ++i)
        if ((p[i / 64] >> (i % 64) & 1) != 0) powers.push_back(i);
    std::vector<std::uint32_t> sequence(degree + state_words);
    std::copy(words.begin(), words.end(), sequence.begin());
    for (std::size_t i = 0; i < degree; ++i)
        sequence[i + state_words] = sequence[i + ahead] ^ twisted(sequence[i], sequence[i + 1]);
    add_up(sequence, powers, words);
}

Mt19937::Mt19937(std::uint32_t seed) {
    thread_local mt19937::SeededStates<block_size> states;
    std::ranges::copy(states.of(seed), state_.begin());
}

Mt19937::Mt19937(const Mt19937Words& words, std::size_t first) : state_(words), next_(first) {
    std::transform(state_.begin(), state_.end(), outputs_.begin(), mt19937::tempered);
}

// In three ranges, so that no word is read within a vector's length of where it was written.
void Mt19937::twist(std::size_t first, std::size_t end) {
    using namespace mt19937;
    std::size_t i = first;
    for (; i < std::min(end, behind); ++i)
        state_[i] = state_[i + ahead] ^ twisted(state_[i], state_[i + 1]);
    for (; i < std::min(end, block_size - 1); ++i)
        state_[i] = state_[i - behind] ^ twisted(state_[i], state_[i + 1]);
    if (i < end) state_[i] = state_[i - behind] ^ twisted(state_[i], state_[0]);
}

void Mt19937::make_more() {
    const std::size_t first = made_ % block_size;
    if (first == 0) before_ += block_size;
    made_ = first + part_size;
    twist(first, made_);
    for (std::size_t i = first; i < made_; ++i) outputs_[i] = mt19937::tempered(state_[i]);
    next_ = first;
}

void Mt19937::skip(std::uint64_t count) {
    if (count >= min_jump) {
        Mt19937Words words = next_words();
        jump(words, count);
        const std::uint64_t position = this->position() + count;
        *this = Mt19937(words, 0);
        before_ = position;
        return;
    }
    while (count > made_ - next_) {
        count -= made_ - next_;
        if (made_ == block_size)
            for (; count > block_size; count -= block_size, before_ += block_size)
                twist(0, block_size);
        make_more();
    }
    next_ += count;
}

Mt19937Words Mt19937::next_words() const {
    Mt19937 copy = *this;
    copy.twist(made_, block_size);
    copy.twist(0, next_);
    std::rotate(copy.state_.begin(), copy.state_.begin() + static_cast<std::ptrdiff_t>(next_),
                copy.state_.end());
    return copy.state_;
}

}  // namespace attn
