#include "io/text/byte_alphabet.hpp"

#include <array>

#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

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
