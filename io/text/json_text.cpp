// Single values as JSON text; see json_text.hpp.
#include "io/text/json_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

namespace attn::io {

void append_json_string(std::string& out, std::string_view text) {
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
        return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
    });
    if (plain)
        ((out += '"') += text) += '"';
    else
        out += nlohmann::json(text).dump();
}

void append_json_number(std::string& out, double value) {
    std::array<char, 32> text{};
    const char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
    out += digits;
    if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace attn::io
