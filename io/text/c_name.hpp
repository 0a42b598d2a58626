// Names of arrays in headers of C.
#pragma once

#include <string>
#include <string_view>

namespace attn::io {

/// A name with '_' for each character that C does not allow in names, and before a first digit.
inline std::string c_name(std::string_view name) {
    std::string made;
    for (const char c : name) {
        const bool is_digit = c >= '0' && c <= '9';
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (is_digit && made.empty()) made += '_';
        made += is_digit || is_letter ? c : '_';
    }
    return made;
}

}  // namespace attn::io
