// Fewer of many generated cases where each takes long.
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

/// Sanitizers look at how cases are computed, not at every number, and make programs several times
/// slower: they get one of this many cases; other builds get all. A prime, so that it takes turns
/// with what cases repeat in 2, 3 or 4.
inline constexpr std::size_t sample_step = has_sanitizer ? 5 : 1;

/// Whether the next case is taken.
class Sample {
public:
    bool operator()() { return number_++ % sample_step == 0; }

private:
    std::size_t number_ = 0;
};

}  // namespace attn::test
