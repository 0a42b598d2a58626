// Single values as JSON text; see json_text.hpp.
#include "io/text/json_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

namespace attn::io {
namespace {

/// JSON lets DEL and U+0080 to U+009F stand as they are, and a terminal obeys some of them.
void append_without_controls(std::string& out, std::string_view json) {
    for (std::size_t at = 0; at < json.size(); ++at) {
        const auto byte = [&](std::size_t i) {
            return i < json.size() ? static_cast<unsigned char>(json[i]) : 0U;
        };
        const bool is_pair = byte(at) == 0xc2 && byte(at + 1) >= 0x80 && byte(at + 1) <= 0x9f;
        if (byte(at) != 0x7f && !is_pair) {
            out += json[at];
            continue;
        }
        constexpr std::string_view digits = "0123456789abcdef";
        const unsigned code = is_pair ? byte(++at) : 0x7f;
        (((out += "\\u00") += digits[code / 16]) += digits[code % 16]);
    }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
        return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
    });
    if (plain)
        ((out += '"') += text) += '"';
    else
        append_without_controls(out, nlohmann::json(text).dump());
}

void append_json_number(std::string& out, double value) {
    std::array<char, 32> text{};
    const char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
    out += digits;
    if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace attn::io
