// Text between the tags of SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace attn::io {

/// The text with &, < and > escaped. Only for text, not for attributes.
std::string markup_text(std::string_view text);

}  // namespace attn::io
