#include "io/tokenizer/characters.hpp"

#include <utf8proc.h>

#include <algorithm>

#include "io/file/bytes.hpp"
#include "io/text/text.hpp"

namespace attn::io {

/// scripts.txt: all of Unicode 14 but the three that count as one. Source: Scripts.txt.
extern const std::string_view script_names;

namespace {

constexpr CodeRange white_space[] = {
    {0x0009, 0x000d}, {0x0020, 0x0020}, {0x0085, 0x0085}, {0x00a0, 0x00a0}, {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

/// Source: BERT's tokenization.py, _is_chinese_char, without U+2B820 to U+2B91F, as tokenizers.
constexpr CodeRange ideographs[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                    {0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
                                    {0x2f800, 0x2fa1f}};

/// Alphabetic, Join_Control: what is part of a word without being so by its category.
constexpr CodeRange other_alphabetic[] = {
    {0x200c, 0x200d}, {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};

utf8proc_category_t category_of(char32_t code) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_in_categories(char32_t code, utf8proc_category_t first, utf8proc_category_t last) {
    const utf8proc_category_t category = category_of(code);
    return category >= first && category <= last;
}

bool is_ascii(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Characters that all versions of Unicode decompose and compose in the same way.
void append_form(std::string& result, std::vector<utf8proc_int32_t>& codes, NormalForm form) {
    if (codes.empty()) return;
    const bool is_compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                        (is_compatible ? UTF8PROC_COMPAT : 0));
    std::vector<utf8proc_int32_t> whole;
    constexpr std::size_t longest = 18;  // of one character
    std::array<utf8proc_int32_t, longest> parts{};
    std::vector<std::pair<utf8proc_int32_t, int>> marks;  // not ordered yet
    const auto flush = [&] {
        std::ranges::stable_sort(marks,
                                 [](const auto& a, const auto& b) { return a.second < b.second; });
        for (const auto& mark : marks) whole.push_back(mark.first);
        marks.clear();
    };
    for (const utf8proc_int32_t code : codes) {
        int boundary = 0;
        const utf8proc_ssize_t count =
            utf8proc_decompose_char(code, parts.data(), longest, options, &boundary);
        if (count < 0 || count > static_cast<utf8proc_ssize_t>(longest))
            throw Error(ErrorKind::input, "text", "has a character that cannot be normalized");
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            const int order = utf8proc_get_property(parts[i])->combining_class;
            if (order == 0) {
                flush();
                whole.push_back(parts[i]);
            } else {
                marks.emplace_back(parts[i], order);
            }
        }
    }
    flush();
    auto size = static_cast<utf8proc_ssize_t>(whole.size());
    if (form == NormalForm::nfc || form == NormalForm::nfkc)
        size = utf8proc_normalize_utf32(
            whole.data(), size, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    for (utf8proc_ssize_t i = 0; i < size; ++i)
        append_utf8(result, static_cast<char32_t>(whole[static_cast<std::size_t>(i)]));
    codes.clear();
}

/// "X[X and what has no script]*" for each script X.
std::string expression_of_scripts() {
    const std::string none = "\\x20\\p{Cn}\\p{Co}";
    // The mark of length belongs to Japanese.
    const std::string mark = "\\x{30fc}", han = "\\p{Han}\\p{Hiragana}\\p{Katakana}" + mark;
    std::string text = "(?![" + none + "])(?:[" + han + "][" + han + none + "]*";
    for (const std::string_view name : lines_of(script_names)) {
        const std::string script = "\\p{" + std::string(name) + "}";
        text += "|(?!" + mark + ")" + script + "(?:(?!" + mark + ")[" + script + none + "])*";
    }
    return text + ")";
}

/// With unassigned characters, which have no script, for newer ones.
std::string without_newer(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const std::string_view character = text.substr(0, character_size(text));
        if (contains(newer_in_scripts, take_character(text)))
            append_utf8(result, character.size() == 2   ? U'\u0378'
                                : character.size() == 3 ? U'\u20f1'
                                                        : U'\U000e1000');
        else
            result += character;
    }
    return result;
}

std::string decoded_base64(const Setting& setting) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::string whole = setting.string();
    std::string_view text = whole;
    std::string bytes;
    while (text.ends_with('=')) text.remove_suffix(1);
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : text) {
        const std::size_t value = digits.find(c);
        if (value == digits.npos)
            setting.fail("is not base64; expected SentencePiece's table of replacements");
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count & 0xff);
    }
    return bytes;
}

constexpr std::size_t longest_grapheme = 5;  // that is looked up as a whole

}  // namespace

bool is_white_space(char32_t code) {
    return contains(white_space, code);
}

std::size_t character_before(std::string_view text, std::size_t end) {
    do --end;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u);
    return end;
}

std::size_t white_space_before(std::string_view text, std::size_t end) {
    while (end > 0) {
        const std::size_t begin = character_before(text, end);
        std::string_view character = text.substr(begin);
        if (!is_white_space(take_character(character))) break;
        end = begin;
    }
    return end;
}

std::size_t white_space_after(std::string_view text, std::size_t begin) {
    while (begin < text.size()) {
        std::string_view rest = text.substr(begin);
        if (!is_white_space(take_character(rest))) break;
        begin = text.size() - rest.size();
    }
    return begin;
}

bool is_mark(char32_t code) {
    return is_in_categories(code, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME) !=
           contains(other_marks, code);
}

bool is_nonspacing_mark(char32_t code) {
    return (category_of(code) == UTF8PROC_CATEGORY_MN) != contains(other_nonspacing, code);
}

bool is_control(char32_t code) {
    const utf8proc_category_t category = category_of(code);
    return (category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
            category == UTF8PROC_CATEGORY_CO) != contains(other_controls, code);
}

bool is_punctuation(char32_t code) {
    if (code < 0x80)
        return (code >= 0x21 && code <= 0x2f) || (code >= 0x3a && code <= 0x40) ||
               (code >= 0x5b && code <= 0x60) || (code >= 0x7b && code <= 0x7e);
    return is_in_categories(code, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO) !=
           contains(other_punctuation, code);
}

bool is_numeric(char32_t code) {
    return is_in_categories(code, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO) !=
           contains(other_numbers, code);
}

bool is_word(char32_t code) {
    const utf8proc_category_t category = category_of(code);
    const bool is_part = (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
                         category == UTF8PROC_CATEGORY_PC || contains(other_alphabetic, code);
    return is_part != contains(other_words, code);
}

bool is_ideograph(char32_t code) {
    return contains(ideographs, code);
}

void append_lowercase(std::string& text, char32_t code) {
    constexpr char32_t capital_i_with_dot = 0x130, dot_above = 0x307;
    if (code == capital_i_with_dot) {
        text += 'i';
        return append_utf8(text, dot_above);
    }
    for (const LowercaseRange& range : newer_lowercase)
        if (code >= range.first && code <= range.last)
            return append_utf8(text,
                               static_cast<char32_t>(static_cast<int>(code) + range.distance));
    append_utf8(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
}

std::string normal_form(std::string_view text, NormalForm form) {
    if (is_ascii(text)) return std::string(text);
    std::string result;
    result.reserve(text.size());
    std::vector<utf8proc_int32_t> codes;
    while (!text.empty()) {
        const char32_t code = take_character(text);
        if (contains(newer_in_forms, code)) {
            append_form(result, codes, form);
            append_utf8(result, code);
        } else {
            codes.push_back(static_cast<utf8proc_int32_t>(code));
        }
    }
    append_form(result, codes, form);
    return result;
}

std::size_t grapheme_size(std::string_view text) {
    std::string_view rest = text;
    auto before = static_cast<utf8proc_int32_t>(take_character(rest));
    utf8proc_int32_t state = 0;
    while (!rest.empty()) {
        const std::size_t size = text.size() - rest.size();
        const auto next = static_cast<utf8proc_int32_t>(take_character(rest));
        if (utf8proc_grapheme_break_stateful(before, next, &state)) return size;
        before = next;
    }
    return text.size();
}

Matches find_scripts(std::string_view text) {
    static const Pattern scripts = Pattern::regex(expression_of_scripts(), "UnicodeScripts");
    Matches matches = scripts.find(without_newer(text));
    // What is left over is at the start, and is dropped.
    for (Match& match : matches) match.is_match = !match.is_match;
    return matches;
}

Charsmap::Charsmap(const Setting& base64) : Charsmap(decoded_base64(base64), base64) {}

Charsmap::Charsmap(const std::string& bytes, const Setting& setting) {
    if (bytes.size() < 4) setting.fail("has fewer than 4 bytes; expected a trie and its texts");
    const std::size_t size = number_at(bytes, 0, 4);
    if (size > bytes.size() - 4 || size % 4 != 0)
        setting.fail("has ", bytes.size() - 4, " bytes; expected a trie of ", size,
                     " bytes, as its start says");
    for (std::size_t at = 4; at < 4 + size; at += 4)
        units_.push_back(static_cast<std::uint32_t>(number_at(bytes, at, 4)));
    texts_ = bytes.substr(4 + size);
    if (!texts_.empty() && texts_.back() != '\0') texts_ += '\0';
    for (std::string_view rest = texts_; !rest.empty();) {
        const std::size_t next = character_size(rest);
        if (next == 0) setting.fail("has texts that are not UTF-8");
        rest.remove_prefix(next);
    }
}

std::optional<std::string_view> Charsmap::find(std::string_view text) const {
    const auto offset = [](std::uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); };
    if (units_.empty()) return {};
    std::size_t at = offset(units_[0]);
    for (const char c : text) {
        if (c == '\0') return {};
        const auto label = static_cast<unsigned char>(c);
        at ^= label;
        if (at >= units_.size()) return {};
        const std::uint32_t unit = units_[at];
        if ((unit & (1u << 31 | 0xffu)) != label) return {};
        at ^= offset(unit);
        if ((unit >> 8 & 1) == 0) continue;
        if (at >= units_.size()) return {};
        const std::size_t begin = units_[at] & 0x7fffffffu;
        if (begin >= texts_.size()) return {};
        // A location within a character would give what is not UTF-8.
        if ((static_cast<unsigned char>(texts_[begin]) & 0xc0u) == 0x80u) return {};
        return std::string_view(texts_).substr(begin, texts_.find('\0', begin) - begin);
    }
    return {};
}

void Charsmap::normalize(TextPart& part) const {
    PartBuilder builder(part, part.text.size());
    std::size_t at = 0;
    const auto append = [&](std::size_t size) {
        const std::string_view text = std::string_view(part.text).substr(at, size);
        builder.append(find(text).value_or(text), at < part.from_start);
        at += size;
    };
    while (at < part.text.size()) {
        const std::string_view rest = std::string_view(part.text).substr(at);
        const std::size_t size = grapheme_size(rest);
        if (size <= longest_grapheme && find(rest.substr(0, size))) {
            append(size);
            continue;
        }
        const std::size_t end = at + size;  // `append` moves `at`
        while (at < end) append(character_size(std::string_view(part.text).substr(at)));
    }
    part = builder.take();
}

}  // namespace attn::io
