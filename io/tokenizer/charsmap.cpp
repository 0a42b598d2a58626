#include "io/tokenizer/characters.hpp"

#include "io/file/bytes.hpp"
#include "io/text/utf8.hpp"

namespace attn::io {
namespace {

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

Charsmap::Charsmap(const Setting& base64) : Charsmap(decoded_base64(base64), base64) {}

Charsmap::Charsmap(const std::string& bytes, const Setting& setting) {
    if (bytes.size() < 4) setting.fail("has fewer than 4 bytes; expected a trie and its texts");
    const std::size_t size = number_at(bytes, 0, 4);
    if (size > bytes.size() - 4 || size % 4 != 0)
        setting.fail("has " + std::to_string(bytes.size() - 4) + " bytes; expected a trie of " +
                     std::to_string(size) + " bytes, as its start says");
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
