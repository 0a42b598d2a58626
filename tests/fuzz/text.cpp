// Numbers and characters in texts, against the C library and plain decoders.
#include <charconv>
#include <regex>

#include "core/layer/embedding.hpp"
#include "io/read/number_array.hpp"
#include "io/text/decimal.hpp"
#include "io/text/json_text.hpp"
#include "io/text/number_text.hpp"
#include "io/text/text.hpp"
#include "io/text/utf8.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace attn::fuzz {
namespace {

/// What the C library makes of the same characters.
void require_number(double value, std::string_view digits) {
    const std::string text(digits);
    require(test::same_bits(value, std::strtod(text.c_str(), nullptr)),
            "a number is strtod's: " + text);
    const double once = io::rounded_once(value, digits, NumberType::float32);
    require(test::same_bits(static_cast<float>(once), std::strtof(text.c_str(), nullptr)),
            "a float32 number is strtof's: " + text);
}

/// JSON's grammar of a number at the front of a text: its length, or 0. A point or an 'e' without
/// digits is what comes after the number.
std::size_t json_number_length(std::string_view text) {
    static const std::regex number(R"(-?(0(?![0-9])|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?)");
    std::cmatch match;
    std::regex_search(text.data(), text.data() + text.size(), match, number,
                      std::regex_constants::match_continuous);
    return static_cast<std::size_t>(match.length());
}

template <class T>
void require_shortest(T value) {
    if (!std::isfinite(value)) return;
    const std::string text = io::number_text(value);
    T again{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), again);
    require(
        problem == std::errc{} && end == text.data() + text.size() && test::same_bits(again, value),
        "a number that is written is read back: " + text);
    char expected[64];
    const auto stop = std::to_chars(expected, expected + sizeof expected, value);
    require(text.size() <= static_cast<std::size_t>(stop.ptr - expected),
            "no spelling is shorter: " + text);
}

/// RFC 3629, byte by byte: the characters of a text, empty if it is not UTF-8.
std::optional<std::u32string> decoded(std::string_view text) {
    std::u32string characters;
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = [&](std::size_t i) {
            return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
        };
        const unsigned lead = byte(at);
        const std::size_t size = lead < 0x80   ? 1
                                 : lead < 0xc2 ? 0
                                 : lead < 0xe0 ? 2
                                 : lead < 0xf0 ? 3
                                 : lead < 0xf5 ? 4
                                               : 0;
        if (size == 0) return std::nullopt;
        char32_t code = size == 1 ? lead : lead & (0x7fu >> size);
        for (std::size_t i = 1; i < size; ++i) {
            if ((byte(at + i) & 0xc0) != 0x80) return std::nullopt;
            code = code << 6 | (byte(at + i) & 0x3f);
        }
        const bool is_long = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
        if (is_long || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return std::nullopt;
        characters += code;
        at += size;
    }
    return characters;
}

/// Python's str.isspace.
bool is_space(char32_t c) {
    static const std::set<char32_t> spaces{
        0x09,   0x0a,   0x0b,   0x0c,   0x0d,   0x1c,   0x1d,   0x1e,   0x1f,   0x20,
        0x85,   0xa0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
        0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
    return spaces.contains(c);
}

bool has_control(const std::u32string& text) {
    return std::any_of(text.begin(), text.end(), [](char32_t c) { return c < 0x20 || c == 0x7f; });
}

}  // namespace

void read_decimal(std::string_view bytes) {
    const std::string padded = std::string(bytes) + std::string(io::decimal_reach, ',');
    const std::size_t length = json_number_length(bytes);
    double value = 0;
    if (const char* const end = io::read_decimal(padded.data(), value)) {
        const std::string_view digits(padded.data(), static_cast<std::size_t>(end - padded.data()));
        require(digits.size() == length, "a number ends where JSON says");
        require_number(value, digits);
        require(test::same_bits(static_cast<float>(value),
                                std::strtof(std::string(digits).c_str(), nullptr)),
                "the fast path answers only where the nearest float32 is certain");
    }
    const io::ParsedNumber strict = io::parse_json_number(bytes);
    require(strict.length == length, "a number is one where JSON says");
    if (length != 0) require_number(strict.value, bytes.substr(0, length));
    const io::ParsedNumber loose = io::parse_loose_number(bytes);
    require(loose.length >= length, "what JSON takes, Python takes");
    if (loose.length != 0 && std::isfinite(loose.value))
        require_number(loose.value, bytes.substr(0, loose.length));

    Draw draw(bytes);
    require_shortest(draw.bits<double>());
    require_shortest(std::bit_cast<float>(draw.bits<std::uint32_t>()));
    const double shown = draw.bits<double>();
    const int decimals = static_cast<int>(draw.size(0, 40));
    if (!std::isfinite(shown)) return;
    const std::string text = io::number_text(shown, decimals);
    char expected[512];
    std::snprintf(expected, sizeof expected, "%.*f", decimals, shown);
    require(text == expected, "decimals are printf's: " + text + " and " + expected);
}

void read_utf8(std::string_view bytes) {
    const std::optional<std::u32string> characters = decoded(bytes);
    const std::size_t invalid = io::find_invalid_utf8(bytes);
    require(characters.has_value() == (invalid == std::string_view::npos),
            "a text is UTF-8 where RFC 3629 says so");
    if (!characters && invalid < bytes.size())
        require(decoded(bytes.substr(0, invalid)).has_value(), "the first fault is the first");
    std::u32string taken;
    std::string again;
    for (std::string_view left = bytes; !left.empty();) {
        const std::size_t before = left.size(), size = io::character_size(left);
        taken += io::take_character(left);
        require(before - left.size() == std::max<std::size_t>(size, 1), "a character has its size");
        io::append_utf8(again, taken.back());
    }
    if (characters) require(taken == *characters && again == bytes, "characters are what they are");
    for (const std::string& shown : {io::one_line(bytes), io::printable(bytes),
                                     io::one_line(io::excerpt(bytes, bytes.size() / 2))}) {
        const auto safe = decoded(shown);
        require(safe && !has_control(*safe), "what is shown cannot steer a terminal");
    }
    const std::string cut = io::shortened(bytes);
    if (characters) require(decoded(cut).has_value(), "no character is cut");
    require(cut.size() <= bytes.size() + 3, "what is shortened is not longer");
    if (!characters) return;
    require(io::display_width(bytes) <= 2 * characters->size(), "a character has two columns");
    std::string json;
    io::append_json_string(json, bytes);
    require(nlohmann::json::parse(json).get<std::string>() == bytes, "JSON reads the same text");
    const std::string wrapped = io::wrapped(bytes, 10);
    std::string words(bytes), lines = wrapped;
    for (std::string* text : {&words, &lines})
        std::erase_if(*text, [](char c) { return c == ' ' || c == '\n'; });
    require(words == lines, "a text that is wrapped has the same characters");
}

void split_words(std::string_view bytes) {
    const std::optional<std::u32string> characters = decoded(bytes);
    if (!characters) return;  // refused before
    std::vector<std::u32string> expected(1);
    for (char32_t c : *characters) {
        if (is_space(c) && !expected.back().empty()) expected.emplace_back();
        if (!is_space(c) && c != U',') expected.back() += c;
    }
    if (expected.back().empty()) expected.pop_back();
    const Words words = attn::split_words(bytes);
    require(words.tokens.size() == expected.size() && words.ids.size() == expected.size(),
            "words are Python's");
    const std::set<std::u32string> sorted(expected.begin(), expected.end());
    require(words.vocabulary == sorted.size(), "the vocabulary is the set of words");
    for (std::size_t i = 0; i < expected.size(); ++i) {
        require(decoded(words.tokens[i]) == expected[i], "words are Python's");
        require(words.ids[i] == std::distance(sorted.begin(), sorted.find(expected[i])),
                "ids are places in the sorted set");
    }
}

}  // namespace attn::fuzz
