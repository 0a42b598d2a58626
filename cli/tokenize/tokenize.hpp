// `attn tokenize`: converts a text to token ids, and token ids to a text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attn::cli {

enum class TokenForm { table, json, ndjson };

struct TokenizeRequest {
    std::string tokenizer;            ///< a folder, a tokenizer.json or a GGUF file
    std::optional<std::string> text;  ///< a text or ids; empty: standard input
    std::optional<std::string> pair;  ///< a second text
    std::string output = "-";
    TokenForm form = TokenForm::json;
    bool decodes = false;             ///< the text is a list of ids
    bool by_line = false;             ///< each line is a text
    bool adds_special_tokens = true;  ///< when decoding: keeps them
};

/// Reads the tokenizer and the text, and writes the output. Errors: kind input for a text that is
/// not UTF-8, for ids that are not a list or not in the vocabulary; those of io::read_tokenizer and
/// of reading and writing files.
void tokenize(const TokenizeRequest& request);

}  // namespace attn::cli
