// A 64-bit hash that tells inputs apart which differ by accident; it does not protect against
// forgery.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace attn::cli {

/// Of all bytes that were added, in order; the division into calls counts as well.
class Digest {
public:
    void add(std::uint64_t word) { state_ = std::rotl(state_ + word * second, 31) * first; }
    void add(std::string_view bytes);
    /// Words of 8 bytes, the last one filled with zeros: part of a sequence whose length is added
    /// before.
    void add_words(std::string_view bytes);
    std::uint64_t value() const;

private:
    // The primes and the steps are those of xxHash's 64-bit form, on words of 8 bytes.
    static constexpr std::uint64_t first = 0x9e3779b185ebca87, second = 0xc2b2ae3d27d4eb4f,
                                   third = 0x165667b19e3779f9;
    std::uint64_t state_ = third;
};

/// 16 hexadecimal digits.
std::string hex_of(std::uint64_t number);
/// False for other text.
bool read_hex(std::string_view text, std::uint64_t& number);

}  // namespace attn::cli
