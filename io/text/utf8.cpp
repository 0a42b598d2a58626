#include "io/text/utf8.hpp"

#include <array>

namespace attn::io {

std::size_t character_size(std::string_view text) {
    const auto byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    const auto follows = [&](std::size_t i, unsigned low, unsigned high) {
        return byte(i) >= low && byte(i) <= high;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return follows(1, 0x80, 0xbf) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        const bool second = follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
        return second && follows(2, 0x80, 0xbf) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        const bool second = follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
        return second && follows(2, 0x80, 0xbf) && follows(3, 0x80, 0xbf) ? 4 : 0;
    }
    return 0;
}

char32_t take_character(std::string_view& text) {
    const std::size_t size = character_size(text);
    if (size == 0) {
        text.remove_prefix(1);
        return replacement;
    }
    const auto first = static_cast<unsigned char>(text.front());
    char32_t code = size == 1 ? first : first & (0x7fu >> size);
    for (std::size_t i = 1; i < size; ++i)
        code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
    text.remove_prefix(size);
    return code;
}

void append_utf8(std::string& text, char32_t code) {
    const auto append = [&](char32_t byte) { text += static_cast<char>(byte); };
    if (code < 0x80) return append(code);
    if (code < 0x800) {
        append(0xc0 | code >> 6);
    } else if (code < 0x10000) {
        append(0xe0 | code >> 12);
        append(0x80 | (code >> 6 & 0x3f));
    } else {
        append(0xf0 | code >> 18);
        append(0x80 | (code >> 12 & 0x3f));
        append(0x80 | (code >> 6 & 0x3f));
    }
    append(0x80 | (code & 0x3f));
}

namespace {

/// C0 and C1, line ends, directions, everything that Unicode's DerivedCoreProperties.txt calls
/// Default_Ignorable_Code_Point, and marks of annotations. Noncharacters are found by their last
/// bits.
constexpr CodeRange hidden[] = {
    {0x0000, 0x001f}, {0x007f, 0x009f}, {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x061c, 0x061c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164}, {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
    {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

/// Letters of scripts that joiners shape, from Arabic to the Vedic signs, and emoji.
constexpr CodeRange joined[] = {
    {0x0620, 0x1cff}, {0x2190, 0x2bff}, {0xfe0f, 0xfe0f}, {0x1f000, 0x1faff}};

/// Signs that are written as text or as emoji.
constexpr CodeRange styled[] = {{0x00a9, 0x00ae}, {0x203c, 0x2049}, {0x2122, 0x2139},
                                {0x2190, 0x2bff}, {0x3030, 0x3299}, {0x1f000, 0x1faff}};

bool is_hidden(char32_t code) {
    return contains(hidden, code) || (code & 0xfffe) == 0xfffe;
}

/// A hidden character between two others; 0: none.
bool is_seen_between(char32_t code, char32_t before, char32_t after) {
    constexpr char32_t keycap = 0x20e3;
    if (code == 0x200c || code == 0x200d)
        return contains(joined, before) && contains(joined, after) && !is_hidden(after);
    if (code == 0xfe0e || code == 0xfe0f) return contains(styled, before) || after == keycap;
    return false;
}

void append_hex(std::string& text, char32_t number, std::size_t digits) {
    for (std::size_t i = digits; i-- > 0;) text += "0123456789abcdef"[number >> (4 * i) & 15];
}

constexpr char32_t first_unprintable = 0x100;

constexpr bool is_its_own_letter(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::array<char32_t, 256> letters_of_bytes = [] {
    std::array<char32_t, 256> codes{};
    char32_t other = first_unprintable;
    for (unsigned byte = 0; byte < 256; ++byte)
        codes[byte] = is_its_own_letter(byte) ? byte : other++;
    return codes;
}();

/// The byte of a character; 256 for characters outside the alphabet.
constexpr std::array<unsigned short, 0x144> bytes_of_letters = [] {
    std::array<unsigned short, 0x144> bytes{};
    for (auto& byte : bytes) byte = 256;
    for (unsigned byte = 0; byte < 256; ++byte)
        bytes[letters_of_bytes[byte]] = static_cast<unsigned short>(byte);
    return bytes;
}();

}  // namespace

void for_each_character(std::string_view text, FunctionRef<void(const Character&)> take) {
    char32_t before = 0;  // 0 if that one is not shown
    while (!text.empty()) {
        Character character;
        const std::size_t size = character_size(text);
        character.bytes = text.substr(0, std::max<std::size_t>(1, size));
        character.code = take_character(text);
        if (size == 0) {
            character.is_shown = false;
        } else if (character.code < 0x7f) {
            character.is_shown = character.code >= 0x20;
        } else if (is_hidden(character.code)) {
            std::string_view rest = text;
            const char32_t after = rest.empty() ? 0 : take_character(rest);
            character.is_shown = is_seen_between(character.code, before, after);
        }
        before = character.is_shown ? character.code : 0;
        take(character);
    }
}

void append_unicode_escape(std::string& text, char32_t code) {
    append_hex(text += "\\u", code, 4);
}

std::string printable(std::string_view text) {
    std::string line;
    for_each_character(text, [&](const Character& one) {
        if (one.is_shown)
            line += one.bytes;
        else if (one.bytes.size() == 1)
            append_hex(line += "\\x", static_cast<unsigned char>(one.bytes.front()), 2);
        else if (one.code < 0x10000)
            append_unicode_escape(line, one.code);
        else
            append_hex(line += "\\U", one.code, 8);
    });
    return line;
}

std::string in_byte_alphabet(std::string_view bytes) {
    std::string text;
    text.reserve(2 * bytes.size());
    for (const char byte : bytes)
        append_utf8(text, letters_of_bytes[static_cast<unsigned char>(byte)]);
    return text;
}

std::string from_byte_alphabet(std::string_view text) {
    std::string bytes;
    for (std::string_view rest = text; !rest.empty();) {
        const char32_t code = take_character(rest);
        if (code >= bytes_of_letters.size() || bytes_of_letters[code] > 255)
            return std::string(text);
        bytes += static_cast<char>(bytes_of_letters[code]);
    }
    return bytes;
}

}  // namespace attn::io
