#include "io/tokenizer/tokenizer_parts.hpp"

#include <algorithm>
#include <utility>

#include "io/text/utf8.hpp"
#include "io/tokenizer/characters.hpp"

namespace attn::io {
namespace {

bool is_word_at(std::string_view text) {
    return !text.empty() && is_word(take_character(text));
}

}  // namespace

void AddedTokens::Finder::add(const AddedToken& token, std::string_view text,
                              const std::string& place) {
    if (text.empty()) return;
    pieces_.add(static_cast<std::uint32_t>(tokens_.size()), text, [&] { return place; });
    tokens_.push_back(token);
    begins_[static_cast<unsigned char>(text[0])] = true;
}

void AddedTokens::Finder::split(const TextPart& part, std::vector<TextPart>& parts) const {
    const std::string_view text = part.text;
    std::size_t end = 0;
    const auto flush = [&](std::size_t begin) {
        if (end < begin) parts.push_back(slice(part, end, begin));
    };
    for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
        std::size_t size = 0;
        const AddedToken* found = nullptr;
        if (begins_[static_cast<unsigned char>(text[at])])
            pieces_.for_each_prefix(text.substr(at), [&](std::size_t length, std::uint32_t index) {
                size = length;
                found = &tokens_[index];
            });
        if (found == nullptr) {
            ++at;
            continue;
        }
        std::size_t begin = at, next = at + size;
        at = next;
        if (found->is_single_word &&
            ((begin != 0 && is_word_at(text.substr(character_before(text, begin)))) ||
             is_word_at(text.substr(next))))
            continue;
        if (found->takes_left) begin = std::max(white_space_before(text, begin), end);
        if (found->takes_right) next = white_space_after(text, next);
        // As tokenizers does: a token within white space that was taken before is found again.
        flush(begin);
        TextPart token = slice(part, begin, next);
        token.added = Token{found->id, token.text};
        if (begin < next) parts.push_back(std::move(token));
        end = next;
    }
    flush(text.size());
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer,
                         const std::string& place) {
    for (const AddedToken& token : tokens) {
        if (token.content.empty()) continue;
        by_id_[token.id] = token;
        if (token.is_special) special_.insert(token.content);
    }
    // Special tokens are found first.
    std::stable_partition(tokens.begin(), tokens.end(),
                          [](const AddedToken& token) { return token.is_special; });
    std::array<std::set<std::string>, 2> seen;  // of equal ones the first is found
    for (const AddedToken& token : tokens) {
        if (token.content.empty()) continue;
        TextPart text{token.content, 0, {}, most_made_of(token.content.size())};
        if (token.is_normalized && normalizer) normalizer(text);
        by_id_[token.id].content = text.text;
        if (!seen[token.is_normalized ? 1 : 0].insert(text.text).second) continue;
        (token.is_normalized ? normalized_ : plain_).add(token, text.text, place);
    }
    plain_.finish();
    normalized_.finish();
}

std::vector<TextPart> AddedTokens::split(std::string_view text,
                                         const Normalizer& normalizer) const {
    std::vector<TextPart> parts, result;
    const std::size_t most = most_made_of(text.size());
    std::size_t made = 0;  // bytes so far
    plain_.split({std::string(text), character_size(text), {}, most}, parts);
    for (TextPart& part : parts) {
        if (part.added) {
            result.push_back(std::move(part));
            continue;
        }
        if (normalizer) {
            part.most = most - made;
            normalizer(part);
            require_size(part.text.size(), part.most);
            made += part.text.size();
            part.most = most;
        }
        normalized_.split(part, result);
    }
    return result;
}

const AddedToken* AddedTokens::find(std::uint32_t id) const {
    const auto found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &found->second;
}

}  // namespace attn::io
