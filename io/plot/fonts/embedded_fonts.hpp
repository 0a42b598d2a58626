// The fonts' files inside the program; written by fonts.cmake.
#pragma once

#include <array>
#include <cstddef>

namespace attn::io {

struct EmbeddedFont {
    const unsigned char* deflated;  ///< without a header
    std::size_t deflated_size, size;
};

/// In the order in which they are searched for a character.
extern const std::array<EmbeddedFont, 4> embedded_fonts;

}  // namespace attn::io
