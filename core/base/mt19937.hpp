// MT19937, the generator of PyTorch's CPU stream, and any position of its sequence at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace attn {

/// Words n to n + 623 of the sequence whose tempered words are the outputs: the state that
/// determines all later ones.
using Mt19937Words = std::array<std::uint32_t, 624>;

/// Advances words n to n + 623 to words n + count to n + count + 623, in O(log count): the sequence
/// satisfies a linear recurrence over bits, so that stepping is multiplying by x modulo its
/// characteristic polynomial. Takes as long as about a million steps. Source: Haramoto, Matsumoto,
/// Nishimura, Panneton & L'Ecuyer 2008, "Efficient jump ahead for F2-linear random number
/// generators".
void jump(std::span<std::uint32_t, 624> words, std::uint64_t count);

/// MT19937 (Matsumoto & Nishimura 1998) with the seeding of their init_genrand: the outputs of
/// std::mt19937, computed in blocks by loops that compilers vectorise.
class Mt19937 {
public:
    explicit Mt19937(std::uint32_t seed);

    /// The next output is that of words[first].
    Mt19937(const Mt19937Words& words, std::size_t first);

    std::uint32_t draw() {
        if (next_ == made_) make_more();
        return outputs_[next_++];
    }

    /// Two outputs, the first one in the high half.
    std::uint64_t draw64() {
        const std::uint64_t high = draw();
        return (high << 32) | draw();
    }

    /// Skips `count` outputs: by steps if they are few, otherwise by a jump.
    void skip(std::uint64_t count);

    /// The outputs that were drawn or skipped, modulo 2^64.
    std::uint64_t position() const { return before_ + next_; }

    /// Those of the next 624 outputs.
    Mt19937Words next_words() const;

private:
    static constexpr std::size_t block_size = std::tuple_size_v<Mt19937Words>;
    /// Less than a block: a small layer draws few numbers and should not compute more.
    static constexpr std::size_t part_size = block_size / 6;

    /// Fewer steps take less time than a jump.
    static constexpr std::uint64_t min_jump = std::uint64_t{1} << 21;

    /// Words [first, end) of the next block's state.
    void twist(std::size_t first, std::size_t end);
    void make_more();

    alignas(16) Mt19937Words state_;
    alignas(16) Mt19937Words outputs_{};
    std::size_t made_ = block_size, next_ = block_size;  // of outputs_
    std::uint64_t before_ = 0 - block_size;              // outputs before this block
};

}  // namespace attn
