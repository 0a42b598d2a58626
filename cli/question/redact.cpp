#include "cli/question/operands.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace attn::cli {
namespace {

/// Words that reveal nothing specific about a file's contents. An allowlist cannot be circumvented
/// by a crafted file or by a new message.
constexpr std::array<std::string_view, 27> plain_words{
    "value", "values", "is",       "empty",    "rank",   "shape",    "not",
    "UTF-8", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32", "UTF-32LE", "UTF-32BE",
    "holds", "a",      "no",       "zero",     "byte",   "bytes",    "number",
    "array", "text",   "lists",    "numbers",  "longer", "than"};

bool is_digits(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_plain(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        std::string_view word = text.substr(0, end);
        while (word.starts_with('(')) word.remove_prefix(1);
        while (word.ends_with(')') || word.ends_with(',')) word.remove_suffix(1);
        const bool is_known =
            std::find(plain_words.begin(), plain_words.end(), word) != plain_words.end();
        if (!is_known && !is_digits(word)) return false;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return true;
}

/// The file's name, line and column, without a member, key or value.
std::string place_alone(std::string where) {
    where = where.substr(0, where.find(": "));
    for (std::size_t colon; (colon = where.rfind(':')) != std::string::npos;) {
        if (is_digits(std::string_view(where).substr(colon + 1))) break;
        where.resize(colon);
    }
    return where;
}

std::string message_alone(const std::string& message) {
    const std::size_t at = std::min(message.rfind("; expected "), message.size());
    const std::string found = message.substr(0, at), expected = message.substr(at);
    const bool is_shown = !expected.empty() && expected.find('"') == std::string::npos;
    return (is_plain(found) ? found : "something else, which a batch does not show") +
           (is_shown ? expected : "; expected a file that fits (attn inspect shows it)");
}

}  // namespace

void throw_redacted(const Error& error) {
    if (error.kind() == ErrorKind::input)
        throw Error(error.kind(), place_alone(error.where()), message_alone(error.what()));
    if (error.kind() == ErrorKind::shape || error.kind() == ErrorKind::io)
        throw Error(error.kind(), place_alone(error.where()), error.what());
    throw;
}

}  // namespace attn::cli
