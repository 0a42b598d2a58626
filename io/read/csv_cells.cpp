#include "io/read/csv_cells.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "io/read/number_array.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

bool is_decimal_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string in_small_letters(std::string_view text) {
    std::string small(text);
    for (char& c : small)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return small;
}

template <std::size_t N>
bool is_among(std::string_view text, const std::array<std::string_view, N>& all) {
    return std::find(all.begin(), all.end(), text) != all.end();
}

struct CodeRange {
    char32_t first, last;
};

template <std::size_t N>
bool is_within(char32_t code, const std::array<CodeRange, N>& ranges) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const CodeRange& r) { return code >= r.first && code <= r.last; });
}

bool is_currency(char32_t code) {
    static constexpr std::array<CodeRange, 5> signs{
        {{'$', '$'}, {0xa2, 0xa5}, {0x20a0, 0x20cf}, {0xfe69, 0xfe69}, {0xff04, 0xff04}}};
    return is_within(code, signs);
}

/// Hyphens, dashes and the minus sign.
bool is_dash(char32_t code) {
    static constexpr std::array<CodeRange, 7> dashes{{{'-', '-'},
                                                      {0x2010, 0x2015},
                                                      {0x2212, 0x2212},
                                                      {0x207b, 0x207b},
                                                      {0xfe58, 0xfe58},
                                                      {0xfe63, 0xfe63},
                                                      {0xff0d, 0xff0d}}};
    return is_within(code, dashes);
}

/// Characters that may come before the digits of a number, in addition to invisible ones: spaces,
/// signs, quotes, brackets, comparisons, points. Not '#', '_', '@', '/' and the like, which names
/// begin with.
bool may_precede_digits(char32_t code) {
    static constexpr std::array<CodeRange, 15> others{{{0xa0, 0xa0},
                                                       {0xb1, 0xb1},
                                                       {0xb4, 0xb4},
                                                       {0xb7, 0xb7},
                                                       {0x66b, 0x66c},
                                                       {0x1680, 0x1680},
                                                       {0x2000, 0x200f},
                                                       {0x2018, 0x201f},
                                                       {0x202f, 0x2033},
                                                       {0x205f, 0x2060},
                                                       {0x207a, 0x207a},
                                                       {0x2248, 0x2248},
                                                       {0x2264, 0x2265},
                                                       {0x3000, 0x3000},
                                                       {0xfeff, 0xff0e}}};
    if (is_currency(code) || is_dash(code)) return true;
    if (code >= 0x20 && code < 0x7f)
        return std::string_view(" +.,'\"`([{<>=~%").find(static_cast<char>(code)) !=
               std::string_view::npos;
    return is_within(code, others);
}

/// Digits of any script, fractions, and the sign for infinity.
bool is_any_digit(char32_t code) {
    static constexpr std::array<CodeRange, 19> digits{{{'0', '9'},
                                                       {0xb2, 0xb3},
                                                       {0xb9, 0xb9},
                                                       {0xbc, 0xbe},
                                                       {0x660, 0x669},
                                                       {0x6f0, 0x6f9},
                                                       {0x966, 0x96f},
                                                       {0x9e6, 0x9ef},
                                                       {0xa66, 0xa6f},
                                                       {0xae6, 0xaef},
                                                       {0xbe6, 0xbef},
                                                       {0xc66, 0xc6f},
                                                       {0xe50, 0xe59},
                                                       {0xf20, 0xf29},
                                                       {0x2070, 0x2079},
                                                       {0x2080, 0x2089},
                                                       {0x2150, 0x215e},
                                                       {0x221e, 0x221e},
                                                       {0xff10, 0xff19}}};
    return is_within(code, digits) || (code >= 0x1d7ce && code <= 0x1d7ff);
}

/// 2024-05-31, possibly followed by a time.
bool is_date(std::string_view text) {
    static constexpr std::string_view form = "dddd-dd-dd";
    if (text.size() < form.size()) return false;
    for (std::size_t i = 0; i < form.size(); ++i)
        if (form[i] == 'd' ? !is_decimal_digit(text[i]) : text[i] != '-') return false;
    return text.size() == form.size() || text[form.size()] == ' ' || text[form.size()] == 'T';
}

/// Letters that are part of a number: USD 5, R$5, e-5, O.5, nan(ind).
bool has_letters_of_number(std::string_view text) {
    const std::string small = in_small_letters(text);
    const auto at = [&](std::size_t i) { return i < small.size() ? small[i] : '\0'; };
    const auto letters = static_cast<std::size_t>(
        std::find_if_not(small.begin(), small.end(), is_letter) - small.begin());
    const std::string_view word = std::string_view(small).substr(0, letters);
    if (word == "e" && (at(1) == '-' || at(1) == '+') && is_decimal_digit(at(2))) return true;
    if (word == "o" && (at(1) == '.' || at(1) == ',') && is_decimal_digit(at(2))) return true;
    if (is_among(word, std::array<std::string_view, 3>{"nan", "inf", "infinity"}) &&
        (at(letters) == '(' || at(letters) == '%'))
        return true;
    std::string_view rest = std::string_view(small).substr(letters);
    if (letters <= 3 && !rest.empty()) {
        std::string_view after = rest;
        if (is_currency(take_character(after)))
            return !after.empty() && is_decimal_digit(after.front());
    }
    static constexpr std::array<std::string_view, 12> currencies{
        "usd", "eur", "gbp", "chf", "jpy", "cny", "inr", "rs", "kr", "sek", "aud", "cad"};
    if (!is_among(word, currencies)) return false;
    rest.remove_prefix(std::min(rest.find_first_not_of(" .-+"), rest.size()));
    return !rest.empty() && is_decimal_digit(rest.front());
}

bool is_damaged(std::string_view text) {
    static constexpr std::array<std::string_view, 4> booleans{"true", "false", ".true.", ".false."};
    if (is_among(in_small_letters(text), booleans)) return true;
    if (is_date(text)) return false;
    std::optional<bool> found;
    bool has_sign = false;
    for_each_character(text, [&](const Character& next) {
        if (found) return;
        const auto at = static_cast<std::size_t>(next.bytes.data() - text.data());
        const std::string_view rest = text.substr(at);
        if (is_any_digit(next.code))
            found = true;
        else if (next.is_shown && !may_precede_digits(next.code))
            found = has_letters_of_number(rest) ||
                    (has_sign && parse_loose_number(rest).length == rest.size());
        has_sign = has_sign || is_dash(next.code) || next.code == '+';  // a second one: --inf
    });
    return found.value_or(false);
}

bool is_mark(std::string_view text) {
    while (!text.empty()) {
        const char32_t code = take_character(text);
        if (code != '.' && code != '?' && code != 0x2026 && !is_dash(code)) return false;
    }
    return true;
}

bool is_missing(std::string_view text) {
    static constexpr std::array<std::string_view, 22> missing{
        "",       "na",      "n/a",      "n.a.",  "<na>",   "#na",  "#n/a", "#n/a n/a",
        "null",   "<null>",  "none",     "nil",   "nat",    "\\n",  "n/d",  "#value!",
        "#name?", "#div/0!", "#missing", "#ref!", "#null!", "#num!"};
    return is_among(in_small_letters(text), missing);
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
    if (!text.empty() && parse_loose_number(text).length == text.size()) return Cell::number;
    if (const std::string plain = plain_number(text); plain != text) return Cell::number;
    if (is_missing(text)) return Cell::missing;
    if (is_mark(text)) return Cell::mark;
    return is_damaged(text) ? Cell::damaged : Cell::word;
}

std::optional<bool> boolean_of(std::string_view text) {
    const std::string small = in_small_letters(text);
    if (small != "true" && small != "false") return {};
    return small == "true";
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
           (text.find(separator) != std::string_view::npos && cell_of(text) == Cell::damaged);
}

bool names_labels(std::string_view text) {
    static constexpr std::array<std::string_view, 12> known{"",      "token", "tokens", "word",
                                                            "words", "label", "labels", "name",
                                                            "names", "text",  "id",     "index"};
    return is_among(in_small_letters(text), known);
}

bool is_count(std::string_view text, std::size_t number) {
    return text == std::to_string(number);
}

}  // namespace attn::io
