// Added tokens, which are found in a text before it is split into words.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/tokenizer/part.hpp"
#include "io/tokenizer/pieces.hpp"

namespace attn::io {

struct AddedToken {
    std::uint32_t id = 0;
    std::string content;
    bool is_single_word = false;  ///< not found inside a word
    bool takes_left = false;      ///< includes the white space before it
    bool takes_right = false;     ///< includes the white space after it
    bool is_normalized = false;   ///< normalized, and found in the normalized text
    bool is_special = false;
};

class AddedTokens {
public:
    /// `normalizer` may be empty. Errors: kind input at `place` for a token that is too long.
    AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer,
                const std::string& place);

    /// Finds the tokens in a text, and normalizes the text between them.
    std::vector<TextPart> split(std::string_view text, const Normalizer& normalizer) const;

    /// The token with an id. The content of a normalized token is in normalized form.
    const AddedToken* find(std::uint32_t id) const;

    bool is_special(std::string_view content) const { return special_.contains(content); }

    const std::map<std::uint32_t, AddedToken>& all() const { return by_id_; }

private:
    /// Finds the longest token at each position.
    class Finder {
    public:
        void add(const AddedToken& token, std::string_view text, const std::string& place);
        void finish() {
            pieces_.finish();
            pieces_.sort();
        }
        void split(const TextPart& part, std::vector<TextPart>& parts) const;

    private:
        Pieces pieces_;
        std::vector<AddedToken> tokens_;
        std::array<bool, 256> begins_{};
    };

    std::map<std::uint32_t, AddedToken> by_id_;
    std::set<std::string, std::less<>> special_;
    Finder plain_, normalized_;
};

}  // namespace attn::io
