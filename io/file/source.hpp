// A text that came from outside, with the name that errors give it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "io/file/bytes.hpp"

namespace attn::io {

struct Source {
    std::string name;                         ///< the path, or <stdin>
    std::string_view text;                    ///< UTF-8, without a byte-order mark
    std::shared_ptr<const void> memory = {};  ///< where the text lies
    std::size_t first_line = 1;               ///< the number of the text's first line

    /// "name:line:column" of a byte, both from 1; columns count characters.
    std::string place(std::size_t offset) const;
};

/// How much of a text is looked at at once: still in cache then.
inline constexpr std::size_t text_piece = std::size_t{1} << 20;

/// What shows, as it comes, that this is no text: a zero byte, or a word or number of more than
/// 1 MiB; null where nothing does. `text` was looked at up to `from`.
const char* fault_of_text(std::string_view text, std::size_t from);

/// Errors: kind input where there is such a fault.
void check_text(const std::string& name, std::string_view text, std::size_t from);

/// Reads a file whole; "-" is standard input. Errors: kind io where it cannot be read; kind input
/// where it is empty, binary, not UTF-8 or longer than 1 GiB; those of check_text.
Source read_source(const std::string& path, const Access& access = {});

/// The same from bytes that are open already.
Source read_source(const std::shared_ptr<const Bytes>& bytes);

/// A source from the one line of a file that `line` is the number of. The text must outlive it.
/// Errors: as read_source.
Source source_of_line(std::string name, std::string_view text, std::size_t line);

/// The offset of the first byte that is not part of valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// A short piece of `text` at `offset`, quoted, fit to stand in a one-line message.
std::string excerpt(std::string_view text, std::size_t offset);

/// The text with control characters and bytes that are not UTF-8 written as \xNN, fit for a
/// terminal and for one line.
std::string one_line(std::string_view text);

/// The text itself, or its first bytes and "..." where it is longer; no character is cut.
std::string shortened(std::string_view text, std::size_t longest = 40);

}  // namespace attn::io
