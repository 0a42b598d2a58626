// The steps of a tokenizer, in the order of a text's way through them, and their settings, with
// their locations in errors.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "io/tokenizer/pieces.hpp"
#include "io/tokenizer/tokenizer.hpp"

namespace attn::io {

/// A value of a JSON document. It must not outlive the document.
class Setting {
public:
    Setting(const nlohmann::json& value, std::string location)
        : value_(&value), location_(std::move(location)) {}

    /// "tokenizer.json: /decoder/type".
    const std::string& location() const { return location_; }
    const nlohmann::json& value() const { return *value_; }

    /// Always throws kind input, with the location and the problem.
    template <class... Parts>
    [[noreturn]] void fail(const Parts&... message) const {
        throw Error(ErrorKind::input, location_, message...);
    }

    bool is_object() const { return value_->is_object(); }

    /// Whether the member exists and is not null.
    bool has(const char* key) const;

    /// A member. Errors: kind input if there is none.
    Setting at(const char* key) const;

    /// The items of a list. Errors: kind input if it is not a list.
    std::vector<Setting> items() const;

    /// Errors: kind input if the value has another type.
    std::string string() const;
    bool boolean() const;
    std::uint64_t whole(std::uint64_t most) const;
    double number() const;
    std::string character() const;

    /// A member, or the default if there is none.
    std::string string(const char* key, std::string_view otherwise) const {
        return has(key) ? at(key).string() : std::string(otherwise);
    }
    bool boolean(const char* key, bool otherwise) const {
        return has(key) ? at(key).boolean() : otherwise;
    }

    /// Errors: kind unsupported for members with other names, unless they are null or false.
    void allow(std::initializer_list<std::string_view> keys) const;

    /// The value of "type". Errors: kind input if there is none.
    std::string type() const { return at("type").string(); }

    /// Throws kind unsupported: the type is unknown.
    [[noreturn]] void fail_type(std::string_view supported) const;

private:
    const nlohmann::json* value_;
    std::string location_;
};

// The parts of a text while it is tokenized.

/// One piece of a text and its id. `text` is usually the piece as the vocabulary spells it.
struct Token {
    std::uint32_t id = 0;
    std::string text;
};

/// How many bytes, or tokens, the steps may make of `size`: more than Unicode's normal forms and
/// the alphabet of bytes make, and few enough for memory. Without a limit, a file of 40 steps that
/// double a text makes a terabyte of one letter.
constexpr std::size_t most_made_of(std::size_t size) {
    constexpr std::size_t of_any = std::size_t{1} << 20, each = 32;
    return of_any + each * size;
}

/// Errors: kind input at "text" if `size` is more than `most`.
void require_size(std::size_t size, std::size_t most);

/// A part of a text that is normalized or split further, unless it is an added token.
struct TextPart {
    std::string text;
    std::size_t from_start = 0;  ///< leading bytes that replace the first character of the input
    std::optional<Token> added;
    std::size_t most = 0;  ///< bytes that a step may make of it

    bool is_at_start() const { return from_start != 0; }
};

/// A part whose text is being replaced, from front to back.
class PartBuilder {
public:
    /// Replaces `part`, and makes about `size` bytes.
    PartBuilder(const TextPart& part, std::size_t size) {
        part_.text.reserve(size);
        part_.most = part.most;
    }

    /// `at_start`: whether it replaces the first character of the input. Errors: as require_size.
    void append(std::string_view text, bool at_start) {
        require_size(part_.text.size() + text.size(), part_.most);
        if (at_start && part_.from_start == part_.text.size()) part_.from_start += text.size();
        part_.text += text;
    }
    void append(char32_t code, bool at_start);

    TextPart take() { return std::move(part_); }

private:
    TextPart part_;
};

/// The part text[begin, end) of a part.
TextPart slice(const TextPart& part, std::size_t begin, std::size_t end);

/// Puts the text before that of the part.
void prepend(TextPart& part, const std::string& text);

/// Writes each byte as its character in GPT-2's alphabet.
void to_byte_alphabet(TextPart& part);

using Normalizer = std::function<void(TextPart&)>;
using PreTokenizer = std::function<void(std::vector<TextPart>&)>;

// The step that changes a text before it is split: normalizer.

/// Errors: kind input for invalid settings, kind unsupported for unknown ones.
Normalizer read_normalizer(const Setting& setting);

// Added tokens, which are found in a text before it is split into words.

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
    /// `normalizer` may be empty. Errors: kind input at `location` for a token that is too long.
    AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer,
                const std::string& location);

    /// Finds the tokens in a text, and normalizes the text between them.
    std::vector<TextPart> split(std::string_view text, const Normalizer& normalizer) const;

    /// The token with an id. The content of a normalized token is in normalized form.
    const AddedToken* find(std::uint32_t id) const;

    bool is_special(std::string_view content) const { return special_.contains(content); }

private:
    /// Finds the longest token at each position.
    class Finder {
    public:
        void add(const AddedToken& token, std::string_view text, const std::string& location);
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

// The step that splits a text into words: pre_tokenizer.

/// Errors: kind input for invalid settings, kind unsupported for unknown ones.
PreTokenizer read_pre_tokenizer(const Setting& setting);

/// GPT-2's regular expression for words.
extern const char* const gpt2_words;

// The step that turns words into tokens: model.

/// Appends the tokens of a word. Errors: kind input if the word has none and the vocabulary has no
/// unknown token.
using WordModel = std::function<void(std::string_view word, std::vector<Token>& tokens)>;

/// The token with an id in the vocabulary.
inline Token token_of(const Pieces& pieces, std::uint32_t id) {
    return {id, std::string(*pieces.piece(id))};
}

/// Always throws kind input: a word is unknown, and so is the token for unknown words.
[[noreturn]] void fail_unknown_token(const std::string& location, const std::string& unknown);

/// "<0x0A>".
std::string byte_piece(unsigned char byte);

/// The ids of two pieces and of their merge. Earlier merges have priority.
struct Merge {
    std::uint32_t left = 0, right = 0, merged = 0;
};

struct BpeSettings {
    std::string location;  ///< for errors
    std::optional<std::string> unknown;
    std::string prefix, suffix;  ///< of pieces that continue a word, and that end it
    bool fuses_unknown = false, falls_back_to_bytes = false, ignores_merges = false;
};
WordModel make_bpe(std::shared_ptr<const Pieces> pieces, BpeSettings settings,
                   const std::vector<Merge>& merges);

/// SentencePiece's BPE: merges the pair that forms the piece with the highest score first.
WordModel make_scored_bpe(std::shared_ptr<const Pieces> pieces, std::vector<float> scores,
                          std::optional<std::uint32_t> unknown);

struct WordPieceSettings {
    std::string location, unknown = "[UNK]", prefix = "##";
    std::size_t longest_word = 100;  ///< characters
};
WordModel make_word_piece(std::shared_ptr<Pieces> pieces, WordPieceSettings settings);

/// Each whole word is a piece.
WordModel make_word_level(const std::shared_ptr<const Pieces>& pieces, const std::string& location,
                          const std::string& unknown);

struct UnigramSettings {
    std::string location;
    std::vector<double> scores;  ///< by id
    std::optional<std::uint32_t> unknown;
    bool falls_back_to_bytes = false;
};
WordModel make_unigram(std::shared_ptr<Pieces> pieces, UnigramSettings settings);

// The step that adds tokens around one or two texts: post_processor.

struct TypedToken {
    Token token;
    std::uint32_t type = 0;
};
using Encoding = std::vector<TypedToken>;

/// Takes the encodings of one text or of two, and makes at most `most` tokens of them. Errors: as
/// require_size.
using PostProcessor =
    std::function<std::vector<Encoding>(std::vector<Encoding>, bool add_special, std::size_t most)>;

/// Errors: kind input for invalid settings, kind unsupported for unknown ones.
PostProcessor read_post_processor(const Setting& setting);

// The step that turns tokens into a text: decoder.

/// The texts of tokens, to be concatenated, of at most `most` bytes. Errors: as require_size.
using Decoder = std::function<std::vector<std::string>(std::vector<std::string>, std::size_t most)>;

/// Errors: kind input for invalid settings, kind unsupported for unknown ones.
Decoder read_decoder(const Setting& setting);

/// The text of bytes, with U+FFFD in place of bytes that are not valid UTF-8.
std::string lossy_utf8(std::string_view bytes);

std::size_t bytes_of(const std::vector<std::string>& texts);

/// Replaces every `from`. An empty `from` has no effect.
void replace_all(std::string& text, std::string_view from, std::string_view to);

/// Replaces pieces such as <0xE2> by their bytes, if these are valid UTF-8.
std::vector<std::string> join_bytes(std::vector<std::string> tokens, std::size_t);

// The steps of a tokenizer.

/// Steps that are missing are empty.
struct Tokenizer::Parts {
    std::string location;
    Normalizer normalizer;
    PreTokenizer pre_tokenizer;
    WordModel model;
    std::shared_ptr<const Pieces> pieces;  ///< of the model
    PostProcessor post_processor;
    Decoder decoder;
    std::optional<AddedTokens> added;

    Encoding encode(std::string_view text, std::uint32_t type) const;
    TokenizedText with_special(std::vector<Encoding> texts, bool add_special,
                               std::size_t most) const;

    /// Shortens the texts so that with_special() gives at most `most` tokens: the longer one first,
    /// then both alike. Returns the number of tokens that are left out.
    std::size_t truncate(std::vector<Encoding>& texts, bool add_special, std::size_t most) const;
};

}  // namespace attn::io
