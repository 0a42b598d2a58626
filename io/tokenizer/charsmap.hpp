// SentencePiece's table of replacements: a trie, and the replacement texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizer/part.hpp"
#include "io/tokenizer/setting.hpp"

namespace attn::io {

/// Source: google/sentencepiece, normalizer.cc; s-yata/darts-clone for the trie.
class Charsmap {
public:
    /// Base64 of the trie's size in bytes, its units, and the texts, each terminated by a zero
    /// byte. Errors: kind input for anything else.
    explicit Charsmap(const Setting& base64);
    /// The same of the bytes; `setting` is for errors.
    Charsmap(const std::string& bytes, const Setting& setting);

    void normalize(TextPart& part) const;

private:
    /// The replacement of the shortest entry that is a prefix of the text.
    std::optional<std::string_view> find(std::string_view text) const;

    std::vector<std::uint32_t> units_;
    std::string texts_;
};

}  // namespace attn::io
