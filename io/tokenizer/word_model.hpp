// The step that turns words into tokens: model.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizer/part.hpp"
#include "io/tokenizer/pieces.hpp"
#include "io/tokenizer/setting.hpp"

namespace attn::io {

class WordModel {
public:
    virtual ~WordModel() = default;

    /// Appends the tokens of a word. Errors: kind input if the word has none and the
    /// vocabulary has no unknown token.
    virtual void append(std::string_view word, std::vector<Token>& tokens) const = 0;

    const Pieces& pieces() const { return *pieces_; }

protected:
    explicit WordModel(std::shared_ptr<const Pieces> pieces) : pieces_(std::move(pieces)) {}

    /// The token with an id in the vocabulary.
    Token token(std::uint32_t id) const { return {id, std::string(*pieces_->piece(id))}; }

private:
    std::shared_ptr<const Pieces> pieces_;
};

using WordModelOwner = std::unique_ptr<const WordModel>;

/// "<0x0A>".
std::string byte_piece(unsigned char byte);

/// The ids of two pieces and of their merge. Earlier merges have priority.
struct Merge {
    std::uint32_t left = 0, right = 0, merged = 0;
};

struct BpeSettings {
    std::string place;  ///< for errors
    std::optional<std::string> unknown, prefix, suffix;
    bool fuses_unknown = false, falls_back_to_bytes = false, ignores_merges = false;
};
WordModelOwner make_bpe(std::shared_ptr<const Pieces> pieces, BpeSettings settings,
                        const std::vector<Merge>& merges);

/// SentencePiece's BPE: merges the pair that forms the piece with the highest score first.
WordModelOwner make_scored_bpe(std::shared_ptr<const Pieces> pieces, std::vector<float> scores,
                               std::optional<std::uint32_t> unknown);

struct WordPieceSettings {
    std::string place, unknown = "[UNK]", prefix = "##";
    std::size_t longest_word = 100;  ///< characters
};
WordModelOwner make_word_piece(std::shared_ptr<Pieces> pieces, WordPieceSettings settings);

/// Each whole word is a piece.
WordModelOwner make_word_level(std::shared_ptr<const Pieces> pieces, const std::string& place,
                               const std::string& unknown);

struct UnigramSettings {
    std::string place;
    std::vector<double> scores;  ///< by id
    std::optional<std::uint32_t> unknown;
    bool falls_back_to_bytes = false;
};
WordModelOwner make_unigram(std::shared_ptr<Pieces> pieces, UnigramSettings settings);

}  // namespace attn::io
