// Text between the tags of SVG and HTML.
#pragma once

#include <string>
#include <string_view>

namespace attn::io {

/// The text with &, < and > written out. For text alone, not for what stands in an attribute.
std::string markup_text(std::string_view text);

}  // namespace attn::io
