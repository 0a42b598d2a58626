// External text, whole or by lines, with its name in errors.
#pragma once

#include <limits>

#include "io/file/bytes.hpp"

namespace attn::io {

struct Source {
    std::string name;                         ///< the path, or <stdin>
    std::string_view text;                    ///< UTF-8, without a byte-order mark
    std::shared_ptr<const void> memory = {};  ///< the memory of the text
    /// The number of the text's first line; 0 of one that is not in the file, which counts as 1.
    std::size_t first_line = 1;

    /// "name:line:column" of a byte, both from 1; columns count characters.
    std::string location(std::size_t offset) const;
};

/// The piece of text that is checked at once: it fits in the cache.
inline constexpr std::size_t text_piece = std::size_t{1} << 20;

/// The text of a file, or of its first line, without a byte-order mark.
std::string_view without_byte_order_mark(std::string_view text);

/// Errors: kind input for evidence in the bytes so far that this is not text: a zero byte, or a
/// word or number of more than 1 MiB. `text` was checked up to `from`.
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
std::string quoted_name(std::string_view name, std::size_t longest = 40);

/// The text, or its first bytes and "..." if it is longer; no character is split.
std::string shortened(std::string_view text, std::size_t longest = 40);

/// Bytes of a list of names in an error.
inline constexpr std::size_t longest_list = 400;

// Lines of a file or pipe, as they come; of a gzip file, decompressed.

struct Line {
    std::string_view text;   ///< without its line break; until the next call
    std::size_t number = 0;  ///< from 1
    std::size_t size = 0;    ///< in bytes; text is empty if that is too many
    bool is_whole = true;    ///< a line break ended it, not the end of the file
};

enum class Next { found, none_yet, end };

/// Memory holds one line, or the last piece read.
class LineReader {
public:
    /// Longer lines are skipped and returned without their text; so are long lines that are not
    /// text, unless any length is accepted. Then gzip is not decompressed either: such a file is
    /// the program's own.
    static constexpr std::size_t longest_line = std::size_t{1} << 28;
    static constexpr std::size_t any_length = std::numeric_limits<std::size_t>::max();

    /// "-" is standard input. A wait for more text ends as soon as `wake` is readable; -1: no
    /// `wake`. Errors: kind io if the file cannot be read.
    explicit LineReader(const std::string& path, int wake = -1, std::size_t longest = longest_line);
    LineReader(const LineReader&) = delete;
    LineReader& operator=(const LineReader&) = delete;
    ~LineReader();

    const std::string& name() const { return name_; }  ///< the path, or <stdin>

    /// The next line; `end` also if the wait was interrupted. `none_yet` if it must not wait and
    /// would have to. Errors: kind io; kind input, after all complete lines before it, where gzip
    /// data are damaged or cut off.
    Next next(Line& line, bool may_wait = true);

    /// Bytes of the file, 0 if unknown; and bytes of the lines that were returned.
    std::uint64_t size() const { return size_; }
    std::uint64_t position() const { return position_; }
    /// The part of the file that was read, 0 to 1; empty if unknown.
    std::optional<double> part() const;

private:
    bool is_no_text();
    Next read_more(bool may_wait);
    Next read_bytes(std::string& to, bool& at_end, bool may_wait);
    Next read_compressed(bool may_wait);
    void find_gzip();
    std::size_t extend_buffer();
    Next wait(bool may_wait) const;

    std::string name_;
    int fd_ = -1, wake_;
    std::size_t longest_;
    std::uint64_t size_ = 0, position_ = 0;
    std::string buffer_;
    std::size_t begin_ = 0, searched_ = 0;  // of the current line
    std::size_t skipped_ = 0;               // discarded bytes of a line that is too long
    std::size_t number_ = 0;
    std::size_t looked_at_ = 0;  // bytes of `buffer_` that were checked to be text
    bool is_regular_ = false, at_end_ = false;
    std::unique_ptr<Inflater> gunzip_;  // of a gzip file, once its first bytes are read
    std::string compressed_;            // bytes of it that are not decompressed yet
    bool is_start_ = true, compressed_at_end_ = false, is_damaged_ = false;
};

}  // namespace attn::io
