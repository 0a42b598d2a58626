#include "io/text/display_width.hpp"

#include <utf8proc.h>

#include "io/text/utf8.hpp"

namespace attn::io {

std::size_t display_width(std::string_view text) {
    int width = 0;
    while (!text.empty())
        width += utf8proc_charwidth(static_cast<utf8proc_int32_t>(take_character(text)));
    return static_cast<std::size_t>(width);
}

}  // namespace attn::io
