#include "io/text/utf8.hpp"

#include <utf8proc.h>

#include <array>

namespace attn::io {

namespace {

/// The character at the start of a text, and the number of its bytes: not above 0 if these are not
/// UTF-8.
utf8proc_ssize_t first_of(std::string_view text, utf8proc_int32_t& code) {
    return utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                            static_cast<utf8proc_ssize_t>(text.size()), &code);
}

}  // namespace

std::size_t character_size(std::string_view text) {
    if (text.empty() || static_cast<unsigned char>(text[0]) < 0x80) return 1;
    utf8proc_int32_t code = 0;
    return static_cast<std::size_t>(std::max<utf8proc_ssize_t>(first_of(text, code), 0));
}

char32_t take_character(std::string_view& text) {
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t size = first_of(text, code);
    text.remove_prefix(size > 0 ? static_cast<std::size_t>(size) : 1);
    return size > 0 ? static_cast<char32_t>(code) : replacement;
}

void append_utf8(std::string& text, char32_t code) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
    text.append(bytes, bytes + size);
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
