// Converts texts to token ids and back, like Hugging Face's library tokenizers.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/file/access.hpp"

namespace attn::io {

struct TokenizedText {
    std::vector<std::uint32_t> ids;
    /// Spelled as in the vocabulary. An unknown text of a unigram model, and an added token with
    /// its surrounding white space, are spelled as in the text.
    std::vector<std::string> pieces;
    std::vector<std::uint32_t> type_ids;  ///< 0 for the first text, 1 for the second
    std::size_t left_out = 0;             ///< tokens of the texts, beyond the most that are kept
};

/// Cheap to copy. Threads may share it.
class Tokenizer {
public:
    /// `text` is a tokenizer.json; `location` is its name in errors. Errors: kind input if it is
    /// invalid; kind unsupported for unknown settings.
    static Tokenizer from_json(const std::string& location, std::string_view text);

    /// The tokenizer in a GGUF file: its metadata, an object with the keys tokenizer.ggml.*.
    /// Errors: as from_json.
    static Tokenizer from_gguf(const std::string& location, const nlohmann::json& metadata);

    static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

    /// At most `most` tokens: the first ones of the text and all that are added to it, as the
    /// library's truncation by "longest_first" gives them. Errors: kind input if the text is not
    /// UTF-8, or the vocabulary cannot express it; SettingError of kind usage at "truncate" if more
    /// tokens than `most` are added.
    TokenizedText encode(std::string_view text, bool add_special_tokens = true,
                         std::size_t most = all) const;
    TokenizedText encode_pair(std::string_view text, std::string_view pair,
                              bool add_special_tokens = true, std::size_t most = all) const;

    /// Errors: kind input for an id that is not in the vocabulary.
    std::string decode(std::span<const std::uint32_t> ids, bool skip_special_tokens) const;

    /// The piece with an id. Errors: as decode.
    std::string piece(std::uint32_t id) const;

    /// Whether decode() can skip it. False for ids beyond the vocabulary, which the
    /// tables of models may have.
    bool is_special(std::uint32_t id) const;

private:
    struct Parts;
    friend class TokenizerReader;
    friend class GgufTokenizerReader;
    explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

    std::shared_ptr<const Parts> parts_;
};

/// The tokenizer.json of a folder, of a folder of Hugging Face's cache (with snapshots), or the
/// path itself if it is not a folder. Errors: kind io if there is none.
std::string tokenizer_file(const std::string& path);

/// The tokenizer of a GGUF file, or of tokenizer_file(). Errors: as read_source, read_gguf,
/// tokenizer_file and Tokenizer::from_json.
Tokenizer read_tokenizer(const std::string& path, const Access& access = {});

}  // namespace attn::io
