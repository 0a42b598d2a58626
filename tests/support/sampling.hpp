// Takes a sample of generated cases in sanitizer builds, which are slow.
#pragma once

#include <cstddef>

namespace attn::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool has_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool has_sanitizer = true;
#else
inline constexpr bool has_sanitizer = false;
#endif
#else
inline constexpr bool has_sanitizer = false;
#endif

/// Sanitizers make programs several times slower, and check code paths rather than numbers: their
/// builds run one case in this many, other builds all. 5 is coprime to 2, 3 and 4, so the sample
/// covers variants that cases repeat with these periods.
inline constexpr std::size_t sample_step = has_sanitizer ? 5 : 1;

/// Whether the next case is taken.
class Sample {
public:
    bool operator()() { return number_++ % sample_step == 0; }

private:
    std::size_t number_ = 0;
};

}  // namespace attn::test
