#include "io/read/csv_parts.hpp"

#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

std::string in_small_letters(std::string_view text) {
    std::string small(text);
    for (char& c : small)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return small;
}

/// `list`: words between bars.
bool is_among(std::string_view text, std::string_view list) {
    const std::string word = "|" + in_small_letters(text) + "|";
    return text.find('|') == text.npos && list.find(word) != list.npos;
}

/// Hyphens, dashes and the minus sign.
bool is_dash(char32_t code) {
    return code == '-' || (code >= 0x2010 && code <= 0x2015) || code == 0x2212 || code == 0x207b ||
           code == 0xfe58 || code == 0xfe63 || code == 0xff0d;
}

/// Characters before a digit that make no name: spaces, signs, currencies, quotes, brackets,
/// comparisons, points, and what is not seen. Not '#', '_', '@', '/' and the like.
bool may_precede_digits(const Character& next) {
    const char32_t code = next.code;
    if (code >= 0x20 && code < 0x7f)
        return std::string_view(" -+.,'\"`([{<>=~%$").find(static_cast<char>(code)) !=
               std::string_view::npos;
    return !next.is_shown || code < 0xc0 || code == 0x1680 || (code >= 0x2000 && code < 0x2300) ||
           code == 0x3000 || (code >= 0xfe00 && code < 0xff10);
}

/// 2024-05-31, possibly followed by a time.
bool is_date(std::string_view text) {
    static constexpr std::string_view form = "dddd-dd-dd";
    if (text.size() < form.size()) return false;
    for (std::size_t i = 0; i < form.size(); ++i)
        if (form[i] == 'd' ? !is_digit(text[i]) : text[i] != '-') return false;
    return text.size() == form.size() || text[form.size()] == ' ' || text[form.size()] == 'T';
}

/// Whether the first character that may be of a name is a digit.
bool is_damaged(std::string_view text) {
    char32_t first = 0;
    for_each_character(text, [&](const Character& next) {
        if (first == 0 && !may_precede_digits(next)) first = next.code;
    });
    return first >= '0' && first <= '9' && !is_date(text);
}

bool is_mark(std::string_view text) {
    while (!text.empty()) {
        const char32_t code = take_character(text);
        if (code != '.' && code != '?' && code != 0x2026 && !is_dash(code)) return false;
    }
    return true;
}

}  // namespace

std::string plain_number(std::string_view text) {
    std::string plain(text);
    const std::size_t exponent = plain.find_first_of("dD");
    if (exponent == std::string::npos) return plain;
    plain[exponent] = 'e';
    const bool is_real =
        plain.find('.') < exponent || plain.find_first_of("+-", exponent) != std::string::npos;
    if (is_real && parse_loose_number(plain).length == plain.size()) return plain;
    return std::string(text);
}

Cell cell_of(std::string_view text) {
    static constexpr std::string_view others =
        "|na|n/a|n.a.|<na>|#na|#n/a|#n/a n/a|null|<null>|none|nil|nat|\\n|n/d|#value!|#name?|"
        "#div/0!|#missing|#ref!|#null!|#num!|true|false|.true.|.false.|";
    if (!text.empty() && parse_loose_number(text).length == text.size()) return Cell::number;
    if (plain_number(text) != text) return Cell::number;
    return is_mark(text) || is_among(text, others) || is_damaged(text) ? Cell::other : Cell::word;
}

std::optional<bool> boolean_of(std::string_view text) {
    if (!is_among(text, "|true|false|")) return {};
    return text.size() == 4;
}

bool has_decimal_comma(std::string_view text) {
    std::string pointed(text);
    const std::size_t comma = pointed.find(',');
    if (comma == std::string::npos) return false;
    pointed[comma] = '.';
    return parse_loose_number(pointed).length == pointed.size();
}

bool may_be_grouped(std::string_view text) {
    if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
    const std::size_t comma = text.find(',');
    return comma >= 1 && comma <= 3 && text.size() == comma + 4 && text.front() != '0' &&
           text.find_first_not_of("0123456789", comma + 1) == std::string_view::npos &&
           has_decimal_comma(text);
}

bool is_number_to_quote(std::string_view text, char separator) {
    return has_decimal_comma(text) ||
           (text.find(separator) != std::string_view::npos && is_damaged(text));
}

bool names_index(std::string_view text) {
    constexpr std::string_view unnamed = "Unnamed: 0";
    if (!text.starts_with(unnamed)) return text.empty();
    return text.size() == unnamed.size() || text[unnamed.size()] == '.';
}

bool names_labels(std::string_view text) {
    return names_index(text) || is_among(text,
                                         "|token|tokens|word|words|label|labels|name|names|text|"
                                         "id|token_id|index|idx|");
}

}  // namespace attn::io
