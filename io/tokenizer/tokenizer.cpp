#include "io/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "core/base/error.hpp"
#include "io/file/path.hpp"
#include "io/file/source.hpp"
#include "io/read/gguf_header.hpp"
#include "io/read/input_formats.hpp"
#include "io/tokenizer/tokenizer_parts.hpp"

namespace attn::io {

Encoding Tokenizer::Parts::encode(std::string_view text, std::uint32_t type) const {
    const std::size_t bad = find_invalid_utf8(text);
    if (bad != std::string_view::npos)
        throw Error(ErrorKind::input, "text",
                    "byte " + std::to_string(bad) + " is not UTF-8: " + excerpt(text, bad) +
                        "; expected UTF-8");
    std::vector<TextPart> words = added->split(text, normalizer);
    if (pre_tokenizer) pre_tokenizer(words);
    std::vector<Token> tokens;
    for (TextPart& word : words)
        if (word.added)
            tokens.push_back(std::move(*word.added));
        else if (!word.text.empty())
            model->append(word.text, tokens);
    Encoding encoding;
    encoding.reserve(tokens.size());
    for (Token& token : tokens) encoding.push_back({std::move(token), type});
    return encoding;
}

TokenizedText Tokenizer::Parts::with_special(std::vector<Encoding> texts, bool add_special) const {
    std::size_t tokens = 0;
    for (const Encoding& text : texts) tokens += text.size();
    if (post_processor) texts = post_processor(std::move(texts), add_special, most_made_of(tokens));
    TokenizedText result;
    for (const Encoding& text : texts)
        for (const TypedToken& token : text) {
            result.ids.push_back(token.token.id);
            result.pieces.push_back(token.token.text);
            result.type_ids.push_back(token.type);
        }
    return result;
}

TokenizedText Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
    return parts_->with_special({parts_->encode(text, 0)}, add_special_tokens);
}

TokenizedText Tokenizer::encode_pair(std::string_view text, std::string_view pair,
                                     bool add_special_tokens) const {
    return parts_->with_special({parts_->encode(text, 0), parts_->encode(pair, 1)},
                                add_special_tokens);
}

std::string Tokenizer::piece(std::uint32_t id) const {
    if (const AddedToken* token = parts_->added->find(id)) return token->content;
    if (const auto found = parts_->model->pieces().piece(id)) return std::string(*found);
    throw Error(ErrorKind::input, "id " + std::to_string(id),
                "is not in the vocabulary of " + parts_->place + "; expected one of its ids");
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

std::optional<std::uint32_t> Tokenizer::id(std::string_view piece) const {
    for (const auto& [id, token] : parts_->added->all())
        if (token.content == piece) return id;
    return parts_->model->pieces().find(piece);
}

std::size_t Tokenizer::size() const {
    return parts_->size;
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
    const Source source = read_source(bytes);
    return Tokenizer::from_json(source.name, source.text);
}

}  // namespace attn::io
