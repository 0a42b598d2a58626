// The steps of a tokenizer.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/tokenizer/added_tokens.hpp"
#include "io/tokenizer/decoders.hpp"
#include "io/tokenizer/part.hpp"
#include "io/tokenizer/post_processor.hpp"
#include "io/tokenizer/tokenizer.hpp"
#include "io/tokenizer/word_model.hpp"

namespace attn::io {

/// Steps that are missing are empty.
struct Tokenizer::Parts {
    std::string place;
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    WordModelOwner model;
    PostProcessor post_processor;
    Decoder decoder;
    std::optional<AddedTokens> added;
    std::size_t size = 0;

    Encoding encode(std::string_view text, std::uint32_t type) const;
    TokenizedText with_special(std::vector<Encoding> texts, bool add_special) const;
    std::string piece(std::uint32_t id) const;
    std::string decode(std::span<const std::uint32_t> ids, bool skip_special) const;
};

}  // namespace attn::io
