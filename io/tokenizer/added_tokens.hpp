// Tokens that are found in a text before it is split into words.
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
    bool is_single_word = false;  ///< is not found within a word
    bool takes_left = false;      ///< with the white space before it
    bool takes_right = false;     ///< and after it
    bool is_normalized = false;   ///< is normalized, and found in the normalized text
    bool is_special = false;
};

class AddedTokens {
public:
    /// `normalizer` may be empty. Errors: kind input at `place` for a token that is too long.
    AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer,
                const std::string& place);

    /// Finds the tokens in a text, and normalizes what is between them.
    std::vector<Part> split(std::string_view text, const Normalizer& normalizer) const;

    /// The token of an id. A token that is normalized has its content in that form here.
    const AddedToken* find(std::uint32_t id) const;

    bool is_special(std::string_view content) const { return special_.contains(content); }

    const std::map<std::uint32_t, AddedToken>& all() const { return by_id_; }

private:
    /// The longest token at each place.
    class Finder {
    public:
        void add(const AddedToken& token, std::string_view text, const std::string& place);
        void finish() { pieces_.finish(); }
        void split(const Part& part, std::vector<Part>& parts) const;

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
