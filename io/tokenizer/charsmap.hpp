// SentencePiece's table of replacements: a trie and the texts that it leads to.
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
    /// In base64: the trie's size in bytes, its units and the texts, each with a zero byte at its
    /// end. Errors: kind input if it is not that.
    explicit Charsmap(const Setting& base64);

    void normalize(Part& part) const;

private:
    /// What replaces the text: that of the shortest entry which it begins with.
    std::optional<std::string_view> find(std::string_view text) const;

    std::vector<std::uint32_t> units_;
    std::string texts_;
};

}  // namespace attn::io
