// External text, with its name in errors.
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
    std::shared_ptr<const void> memory = {};  ///< the memory of the text
    std::size_t first_line = 1;               ///< the number of the text's first line

    /// "name:line:column" of a byte, both from 1; columns count characters.
    std::string place(std::size_t offset) const;
};

/// The piece of text that is checked at once: it fits in the cache.
inline constexpr std::size_t text_piece = std::size_t{1} << 20;

/// The text of a file, or of its first line, without a byte-order mark.
std::string_view without_byte_order_mark(std::string_view text);

/// Evidence in the bytes so far that this is not text: a zero byte, or a word or number of more
/// than 1 MiB; null if none. `text` was checked up to `from`.
const char* fault_of_text(std::string_view text, std::size_t from);

/// Errors: kind input if there is such a fault.
void check_text(const std::string& name, std::string_view text, std::size_t from);

/// Reads a whole file; "-" is standard input. Errors: kind io if it cannot be read; kind input if
/// it is empty, binary, not UTF-8 or longer than 1 GiB; those of check_text.
Source read_source(const std::string& path, const Access& access = {});

/// The same from open bytes.
Source read_source(const std::shared_ptr<const Bytes>& bytes);

/// A source from line number `line` of a file. The text must outlive it. Errors: as read_source.
Source source_of_line(std::string name, std::string_view text, std::size_t line);

/// The offset of the first byte that is not part of valid UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// A short piece of `text` at `offset`, quoted, for a one-line message.
std::string excerpt(std::string_view text, std::size_t offset);

/// The text with control characters and bytes that are not UTF-8 written as \xNN, safe for a
/// terminal and on one line.
std::string one_line(std::string_view text);

/// The same, shortened and in double quotes: a name of a file's.
std::string quoted_name(std::string_view name);

/// The text, or its first bytes and "..." if it is longer; no character is split.
std::string shortened(std::string_view text, std::size_t longest = 40);

}  // namespace attn::io
