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

/// A part of a text that is normalized or split further, unless it is an added token.
struct TextPart {
    std::string text;
    std::size_t from_start = 0;  ///< leading bytes that replace the first character of the input
    std::optional<Token> added;

    bool is_at_start() const { return from_start != 0; }
};

/// A part whose text is being replaced, from front to back.
class PartBuilder {
public:
    explicit PartBuilder(std::size_t size) { part_.text.reserve(size); }

    /// `at_start`: whether it replaces the first character of the input.
    void append(std::string_view text, bool at_start) {
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
