#include "io/tokenizer/tokenizer.hpp"

#include <algorithm>

#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/gguf_header.hpp"
#include "io/read/input_formats.hpp"
#include "io/tokenizer/characters.hpp"

namespace attn::io {
namespace {

bool is_word_at(std::string_view text) {
    return !text.empty() && is_word(take_character(text));
}

}  // namespace

Encoding Tokenizer::Parts::encode(std::string_view text, std::uint32_t type) const {
    const std::size_t bad = find_invalid_utf8(text);
    if (bad != std::string_view::npos)
        throw Error(ErrorKind::input, "text", "byte ", bad, " is not UTF-8: ", excerpt(text, bad),
                    "; expected UTF-8");
    std::vector<TextPart> words = added->split(text, normalizer);
    if (pre_tokenizer) pre_tokenizer(words);
    std::vector<Token> tokens;
    for (TextPart& word : words)
        if (word.added)
            tokens.push_back(std::move(*word.added));
        else if (!word.text.empty())
            model(word.text, tokens);
    Encoding encoding;
    encoding.reserve(tokens.size());
    for (Token& token : tokens) encoding.push_back({std::move(token), type});
    return encoding;
}

TokenizedText Tokenizer::Parts::with_special(std::vector<Encoding> texts, bool add_special,
                                             std::size_t most) const {
    TokenizedText result;
    if (most != all) result.left_out = truncate(texts, add_special, most);
    std::size_t tokens = 0;
    for (const Encoding& text : texts) tokens += text.size();
    if (post_processor) texts = post_processor(std::move(texts), add_special, most_made_of(tokens));
    for (const Encoding& text : texts)
        for (const TypedToken& token : text) {
            result.ids.push_back(token.token.id);
            result.pieces.push_back(token.token.text);
            result.type_ids.push_back(token.type);
        }
    return result;
}

std::size_t Tokenizer::Parts::truncate(std::vector<Encoding>& texts, bool add_special,
                                       std::size_t most) const {
    const std::size_t special =
        with_special(std::vector<Encoding>(texts.size()), add_special, all).ids.size();
    if (most < special)
        throw SettingError(ErrorKind::usage, "truncate", "fewer tokens than the ", special,
                           " that the tokenizer adds; expected at least ", special);
    std::size_t size = 0;
    for (const Encoding& text : texts) size += text.size();
    const std::size_t kept = most - special;
    if (size <= kept) return 0;
    if (texts.size() == 1) {
        texts[0].resize(kept);
        return size - kept;
    }
    const bool is_first_longer = texts[0].size() > texts[1].size();
    Encoding &shorter = texts[is_first_longer ? 1 : 0], &longer = texts[is_first_longer ? 0 : 1];
    const std::size_t half = kept / 2;
    if (shorter.size() > half) shorter.resize(half);
    longer.resize(kept - shorter.size());
    return size - kept;
}

TokenizedText Tokenizer::encode(std::string_view text, bool add_special_tokens,
                                std::size_t most) const {
    return parts_->with_special({parts_->encode(text, 0)}, add_special_tokens, most);
}

TokenizedText Tokenizer::encode_pair(std::string_view text, std::string_view pair,
                                     bool add_special_tokens, std::size_t most) const {
    return parts_->with_special({parts_->encode(text, 0), parts_->encode(pair, 1)},
                                add_special_tokens, most);
}

std::string Tokenizer::piece(std::uint32_t id) const {
    if (const AddedToken* token = parts_->added->find(id)) return token->content;
    if (const auto found = parts_->pieces->piece(id)) return std::string(*found);
    throw Error(ErrorKind::input, "id " + std::to_string(id), "is not in the vocabulary of ",
                parts_->location, "; expected one of its ids");
}

std::string Tokenizer::decode(std::span<const std::uint32_t> ids, bool skip_special_tokens) const {
    std::vector<std::string> tokens;
    for (const std::uint32_t id : ids) {
        std::string token = piece(id);
        if (!skip_special_tokens || !parts_->added->is_special(token))
            tokens.push_back(std::move(token));
    }
    const Decoder& decoder = parts_->decoder;
    const std::size_t most = most_made_of(bytes_of(tokens));
    if (decoder && !tokens.empty()) tokens = decoder(std::move(tokens), most);
    std::string text;
    for (const std::string& token : tokens) {
        if (!decoder && &token != &tokens.front()) text += ' ';
        text += token;
    }
    return text;
}

bool Tokenizer::is_special(std::uint32_t id) const {
    const AddedToken* const token = parts_->added->find(id);
    return token != nullptr && token->is_special;
}

std::string tokenizer_file(const std::string& path) {
    if (!is_folder(path)) return path;
    constexpr std::string_view names[] = {"tokenizer.json"};
    if (std::string file = file_of_model(path, names); !file.empty()) return file;
    throw Error(ErrorKind::io, path,
                "is a folder without tokenizer.json; expected that file, which "
                "tokenizer.save_pretrained of transformers writes, or the name of a GGUF file");
}

Tokenizer read_tokenizer(const std::string& path, const Access& access) {
    const auto check = [](const std::string& name, std::string_view so_far, std::size_t from) {
        if (!starts_as_gguf(so_far)) check_text(name, so_far, from);
    };
    const auto bytes = Bytes::open(tokenizer_file(path), access, check);
    constexpr std::uint64_t enough = 4;
    if (starts_as_gguf(bytes->read(0, std::min(bytes->size(), enough))))
        return Tokenizer::from_gguf(bytes->name(), read_gguf(bytes).metadata);
    constexpr std::uint64_t start = 16;
    refuse_unread(bytes->name(), bytes->read(0, std::min(bytes->size(), start)));
    const Source source = read_source(bytes);
    return Tokenizer::from_json(source.name, source.text);
}

void AddedTokens::Finder::add(const AddedToken& token, std::string_view text,
                              const std::string& location) {
    if (text.empty()) return;
    pieces_.add(static_cast<std::uint32_t>(tokens_.size()), text, [&] { return location; });
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
                         const std::string& location) {
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
        (token.is_normalized ? normalized_ : plain_).add(token, text.text, location);
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
