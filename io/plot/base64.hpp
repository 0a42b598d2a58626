// Base64, for data embedded in pictures and pages.
#pragma once

#include <string>
#include <string_view>

namespace attn::io {

/// Source: RFC 4648, section 4.
std::string base64(std::string_view bytes);

}  // namespace attn::io
