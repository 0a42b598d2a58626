#include "io/text/json_text.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

/// Characters that JSON allows unescaped but that control a terminal or are not visible.
void append_escaped(std::string& out, const Character& one) {
    constexpr char32_t first_pair = 0x10000;
    if (one.code < first_pair) return append_unicode_escape(out, one.code);
    append_unicode_escape(out, 0xd800 + ((one.code - first_pair) >> 10));
    append_unicode_escape(out, 0xdc00 + ((one.code - first_pair) & 0x3ff));
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
    const bool plain = std::ranges::all_of(
        text, [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
    if (plain) {
        ((out += '"') += text) += '"';
        return;
    }
    constexpr std::string_view escaped = "\"\\\b\f\n\r\t", letters = "\"\\bfnrt";
    out += '"';
    for_each_character(text, [&](const Character& one) {
        const std::size_t letter = escaped.find(one.bytes.front());
        if (letter != std::string_view::npos)
            (out += '\\') += letters[letter];
        else if (one.is_shown)
            out += one.bytes;
        else if (character_size(one.bytes) == 0)
            append_utf8(out, replacement);
        else
            append_escaped(out, one);
    });
    out += '"';
}

std::string json_text(const nlohmann::ordered_json& value) {
    const std::string json =
        value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    std::string text;
    text.reserve(json.size());
    for_each_character(json, [&](const Character& one) {
        if (one.is_shown)
            text += one.bytes;
        else
            append_escaped(text, one);
    });
    return text;
}

void append_json_number(std::string& out, double value) {
    if (std::isinf(value)) {
        out += value < 0 ? "\"-Infinity\"" : "\"Infinity\"";
        return;
    }
    std::array<char, 32> text{};
    const char* const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
    out += digits;
    if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace attn::io
