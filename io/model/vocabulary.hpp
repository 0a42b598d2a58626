// The words that a model's tokenizer has for its ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/file/access.hpp"

namespace attn::io {

/// The pieces of a vocabulary by their ids. Ids need not be close to each other.
class Vocabulary {
public:
    /// The piece as the tokenizer's `convert_ids_to_tokens` names it ("▁the", "##ing", "<0xE2>"),
    /// but that of a byte-level tokenizer is the text that it stands for: " the" for "Ġthe". A byte
    /// of it that is no UTF-8 stands as \xe2. An id without a piece is its number.
    std::string piece(std::uint64_t id) const;

    std::size_t size() const { return places_.size(); }

private:
    friend class VocabularyReader;
    struct Place {
        std::uint64_t id;
        std::size_t begin, end;  // in the text
        bool is_added;           // is never spelled in bytes
    };

    std::string text_;           // of all pieces
    std::vector<Place> places_;  // by id
    bool is_byte_level_ = false;
};

/// The file that holds the vocabulary of the weights at `path`, which stands beside them:
/// tokenizer.json, vocab.json or vocab.txt; empty where there is none.
std::string vocabulary_beside(const std::string& path);

/// Reads such a file: Hugging Face's tokenizer.json of any kind of model, vocab.json of pieces and
/// ids as GPT-2 has it, or vocab.txt with a piece a line as BERT has it. Errors: as read_source;
/// kind input, where it is none of them.
std::shared_ptr<const Vocabulary> read_vocabulary(const std::string& path, const Access& access);

}  // namespace attn::io
