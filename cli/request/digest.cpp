#include "cli/request/digest.hpp"

#include <array>
#include <cstring>

#include "io/text/decimal.hpp"
#include "io/text/number_text.hpp"

namespace attn::cli {

void Digest::add(std::string_view bytes) {
    add(std::uint64_t{bytes.size()});
    add_words(bytes);
}

void Digest::add_words(std::string_view bytes) {
    constexpr std::size_t word = 8;
    std::size_t at = 0;
    for (; at + word <= bytes.size(); at += word) add(io::load_bytes(bytes.data() + at));
    if (at == bytes.size()) return;
    std::array<char, word> last{};
    std::memcpy(last.data(), bytes.data() + at, bytes.size() - at);
    add(io::load_bytes(last.data()));
}

std::uint64_t Digest::value() const {
    std::uint64_t x = state_;
    x = (x ^ (x >> 33)) * second;
    x = (x ^ (x >> 29)) * third;
    return x ^ (x >> 32);
}

std::string hex_of(std::uint64_t number) {
    std::string text(16, '0');
    for (std::size_t i = text.size(); i-- > 0; number >>= 4)
        text[i] = "0123456789abcdef"[number & 15];
    return text;
}

bool read_hex(std::string_view text, std::uint64_t& number) {
    const auto read = io::number_of_text<std::uint64_t>(text, 16);
    number = read.value_or(number);
    return read && text.size() == 16;
}

}  // namespace attn::cli
