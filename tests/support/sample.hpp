// How much of their spaces tests go through. Under a sanitizer a case takes some ten times as long,
// on an emulated processor some thirty times: there tests take one case in seven, spread over every
// kind. Elsewhere they take all, but of spaces of thousands of commands a share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace attn::test {

#if defined(ATTN_SANITIZED) || defined(ATTN_EMULATED)
inline constexpr std::size_t one_in = 7;
#else
inline constexpr std::size_t one_in = 1;
#endif

/// Of a test's usual number of generated cases, those that are asked here.
constexpr std::size_t cases(std::size_t usual) {
    return (usual + one_in - 1) / one_in;
}

inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Which of the cases of nested loops are asked here: asked once for each.
class Sample {
public:
    /// One case in `share` where others are slow; ATTN_TEST_WHOLE in the environment takes all.
    explicit Sample(std::size_t share = 1)
        : step(one_in * (std::getenv("ATTN_TEST_WHOLE") == nullptr ? share : 1)) {}

    /// A Weyl sequence: evenly spread over the steps of every loop, however long they are.
    bool takes() {
        const auto place = static_cast<std::uint32_t>(count_++ * 2654435769u);
        return place <= UINT32_MAX / step;
    }

    const std::size_t step;

private:
    std::uint32_t count_ = 0;
};

}  // namespace attn::test
