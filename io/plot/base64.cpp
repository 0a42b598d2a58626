#include "io/plot/number_planes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace attn::io {

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text((bytes.size() + 2) / 3 * 4, '=');
    char* at = text.data();
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
        std::uint32_t bits = 0;
        for (std::size_t byte = 0; byte < 3; ++byte)
            bits = bits << 8 | (byte < count ? static_cast<unsigned char>(bytes[i + byte]) : 0u);
        for (std::size_t digit = 0; digit < 4; ++digit, ++at)
            if (digit <= count) *at = digits[bits >> (18 - 6 * digit) & 63];
    }
    return text;
}

}  // namespace attn::io
