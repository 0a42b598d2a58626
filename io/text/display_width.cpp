#include "io/text/display_width.hpp"

#include <utf8proc.h>

#include "io/text/utf8.hpp"

namespace attn::io {

std::size_t display_width(std::string_view text) {
    std::size_t width = 0;
    while (!text.empty())
        width += static_cast<std::size_t>(
            utf8proc_charwidth(static_cast<utf8proc_int32_t>(take_character(text))));
    return width;
}

}  // namespace attn::io
