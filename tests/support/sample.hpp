// How much of their spaces tests go through. A sanitizer makes each case some ten times as slow and
// looks for faults that do not hide in one of a thousand alike: it is shown a part of them, spread
// over every kind. All others see all.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attn::test {

#ifdef ATTN_SANITIZED
inline constexpr std::size_t one_in = 7;
#else
inline constexpr std::size_t one_in = 1;
#endif

/// Of a test's usual number of generated cases, those that are asked here.
constexpr std::size_t cases(std::size_t usual) {
    return (usual + one_in - 1) / one_in;
}

/// Which of the cases of nested loops are asked here: asked once for each.
class Sample {
public:
    /// A Weyl sequence: evenly spread over the steps of every loop, however long they are.
    bool takes() {
        const auto place = static_cast<std::uint32_t>(count_++ * 2654435769u);
        return place <= UINT32_MAX / one_in;
    }

private:
    std::uint32_t count_ = 0;
};

}  // namespace attn::test
