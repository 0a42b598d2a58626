// The parts of a text while it is tokenized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn::io {

/// One piece of a text and its id. `text` is usually the piece as the vocabulary spells it.
struct Token {
    std::uint32_t id = 0;
    std::string text;
};

/// How many bytes, or tokens, the steps may make of `size`: more than Unicode's normal forms and
/// the alphabet of bytes make, and few enough for memory. Without a limit, a file of 40 steps that
/// double a text makes a terabyte of one letter.
constexpr std::size_t most_made_of(std::size_t size) {
    constexpr std::size_t of_any = std::size_t{1} << 20, each = 32;
    return of_any + each * size;
}

/// Errors: kind input at "text" if `size` is more than `most`.
void require_size(std::size_t size, std::size_t most);

/// A part of a text that is normalized or split further, unless it is an added token.
struct TextPart {
    std::string text;
    std::size_t from_start = 0;  ///< leading bytes that replace the first character of the input
    std::optional<Token> added;
    std::size_t most = 0;  ///< bytes that a step may make of it

    bool is_at_start() const { return from_start != 0; }
};

/// A part whose text is being replaced, from front to back.
class PartBuilder {
public:
    /// Replaces `part`, and makes about `size` bytes.
    PartBuilder(const TextPart& part, std::size_t size) {
        part_.text.reserve(size);
        part_.most = part.most;
    }

    /// `at_start`: whether it replaces the first character of the input. Errors: as require_size.
    void append(std::string_view text, bool at_start) {
        require_size(part_.text.size() + text.size(), part_.most);
        if (at_start && part_.from_start == part_.text.size()) part_.from_start += text.size();
        part_.text += text;
    }
    void append(char32_t code, bool at_start);

    TextPart take() { return std::move(part_); }

private:
    TextPart part_;
};

/// The part text[begin, end) of a part.
TextPart slice(const TextPart& part, std::size_t begin, std::size_t end);

using Normalizer = std::function<void(TextPart&)>;
using PreTokenizer = std::function<void(std::vector<TextPart>&)>;

}  // namespace attn::io
