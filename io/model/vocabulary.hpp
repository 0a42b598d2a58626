// The labels of ids in a model's tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/file/access.hpp"

namespace attn::io {

/// The pieces of a vocabulary by their ids. Ids need not be close to each other.
class Vocabulary {
public:
    /// The piece as the tokenizer's `convert_ids_to_tokens` names it ("▁the", "##ing", "<0xE2>"),
    /// but for a byte-level tokenizer the decoded text: " the" for "Ġthe". A byte that is not UTF-8
    /// is written as \xe2. An id without a piece is its number.
    std::string piece(std::uint64_t id) const;

    std::size_t size() const { return entries_.size(); }

private:
    friend class VocabularyReader;
    struct Entry {
        std::uint64_t id;
        std::size_t begin, end;  // in the text
        bool is_added;           // is not byte-level
    };

    std::string text_;            // of all pieces
    std::vector<Entry> entries_;  // by id
    bool is_byte_level_ = false;
};

/// The vocabulary file in the folder of the weights at `path`: tokenizer.json, vocab.json or
/// vocab.txt; empty if there is none.
std::string vocabulary_beside(const std::string& path);

/// Reads such a file: Hugging Face's tokenizer.json of any kind of model, GPT-2's vocab.json of
/// pieces and ids, or BERT's vocab.txt with one piece per line. Errors: as read_source; kind input
/// if it is none of them.
std::shared_ptr<const Vocabulary> read_vocabulary(const std::string& path, const Access& access);

}  // namespace attn::io
