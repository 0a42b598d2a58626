// Single values as JSON text, for documents that are written thousands of times a second.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include <nlohmann/json_fwd.hpp>

namespace attn::io {

/// In quotes. Characters that are not shown (utf8.hpp) are \u escapes, and a byte that is not UTF-8
/// is U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// A document on one line, with such strings.
std::string json_text(const nlohmann::ordered_json& value);

/// The shortest decimal that reads back as the same number, with ".0" if it would look like an
/// integer. Infinities are strings, as in arrays. The value must not be NaN.
void append_json_number(std::string& out, double value);

/// A value that is already JSON.
struct JsonText {
    std::string_view text;
};

/// A string, a number, true or false, JSON, or a list of these.
template <class T>
void append_json(std::string& out, const T& value) {
    if constexpr (std::is_same_v<T, JsonText>) {
        out += value.text;
    } else if constexpr (std::is_same_v<T, bool>) {
        out += value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
        out += std::to_string(value);
    } else if constexpr (std::is_floating_point_v<T>) {
        append_json_number(out, value);
    } else if constexpr (std::is_convertible_v<T, std::string_view>) {
        append_json_string(out, value);
    } else {
        out += '[';
        for (const auto& item : value) {
            if (&item != &value.front()) out += ',';
            append_json(out, item);
        }
        out += ']';
    }
}

/// A value alone.
template <class T>
std::string value_text(const T& value) {
    std::string text;
    append_json(text, value);
    return text;
}

/// `"key":value`, after a comma unless it is the first member of its object. Keys are constants
/// that need no escapes.
template <class T>
void append_member(std::string& out, std::string_view key, const T& value) {
    if (!out.empty() && out.back() != '{') out += ',';
    ((out += '"') += key) += "\":";
    append_json(out, value);
}

}  // namespace attn::io
