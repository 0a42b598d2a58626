#include "cli/output/output.hpp"

#include <algorithm>
#include <string_view>

#include "io/file/source.hpp"
#include "io/text/byte_alphabet.hpp"

namespace attn::cli {
namespace {

constexpr std::string_view space_mark = "\u2581";

/// Ġ is also an ordinary letter (of Maltese), so WordPiece and SentencePiece vocabularies are
/// recognised by their own markers.
bool is_byte_level(const std::vector<std::string>& pieces) {
    return std::none_of(pieces.begin(), pieces.end(), [](const std::string& piece) {
        return piece.starts_with("##") || piece == "[CLS]" ||
               piece.find(space_mark) != std::string::npos;
    });
}

}  // namespace

std::vector<std::string> readable_pieces(std::vector<std::string> pieces) {
    const bool has_bytes = is_byte_level(pieces);
    for (std::string& piece : pieces) {
        if (has_bytes) {
            const std::string text = io::from_byte_alphabet(piece);
            if (io::find_invalid_utf8(text) == std::string::npos) piece = text;
        }
        for (std::size_t at = 0; (at = piece.find(space_mark, at)) != std::string::npos;)
            piece.replace(at, space_mark.size(), " ");
    }
    return pieces;
}

}  // namespace attn::cli
