// A tokenizer's pieces as labels that people read.
#pragma once

#include <string>
#include <vector>

namespace attn::cli {

/// The pieces of one text as they read: " didn" for "Ġdidn" of a byte-level vocabulary, and for
/// "▁didn" of SentencePiece. Pieces of WordPiece, "##ing", and parts of a character's bytes stay as
/// they are.
std::vector<std::string> readable_pieces(std::vector<std::string> pieces);

}  // namespace attn::cli
