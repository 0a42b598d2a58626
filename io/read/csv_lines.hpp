// CSV text as records: separators, quotes, comments and blank lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/source.hpp"
#include "io/read/csv.hpp"

namespace attn::io {

struct Field {
    std::string text;
    std::size_t offset = 0;
    bool quoted = false;
    bool decimal_comma = false;  // which the text has as a point

    /// The text as the file has it.
    std::string written() const {
        std::string original = text;
        if (decimal_comma) original[original.find('.')] = ',';
        return original;
    }
};

struct CsvLine {
    std::vector<Field> fields;
    std::size_t line = 0;      // from 1
    std::size_t offset = 0;    // of its first byte
    bool after_blank = false;  // a line of blanks comes before it and after the last record

    bool begins_with_hash() const { return !fields[0].quoted && fields[0].text.starts_with('#'); }
};

/// "f.csv:3".
std::string line_place(const Source& source, std::size_t line);

/// The shape in a comment `# shape: 2, 6, 3`.
struct ShapeComment {
    std::vector<std::size_t> shape;  // empty if there is none
    std::size_t line = 0;
};

/// Splits the text into records; csv.hpp defines separators and skipped lines. Errors: kind input
/// for unterminated quotes or text after them, for a row of empty fields, for an invalid shape, and
/// for a comma between numbers without quotes that may be a decimal comma or a separator.
class CsvLineReader {
public:
    /// `separator`: if it is already known.
    CsvLineReader(const Source& source, const CsvStyle& style, char separator = '\0');

    /// White space is ' '.
    char separator() const { return separator_; }

    /// The shape in the comments before the first line.
    const ShapeComment& shape() const { return shape_; }

    /// Whether a separator without a field after it ends every line.
    bool ends_with_separator() const { return ends_with_separator_; }

    /// False at the end of the text.
    bool next(CsvLine& line);

    /// Continues at this line, which is not a comment.
    void restart_at(std::size_t offset, std::size_t line);

private:
    char named_separator() const;
    char find_separator();
    char separator_in(std::string_view line);
    bool separates_quoted_fields();
    void check_commas(const CsvLine& line) const;
    bool is_at_every_end() const;
    bool skip_to_record();
    void read_shape(std::string_view comment);
    Field read_field();
    void take_decimal_comma(Field& field) const;
    void read_quoted(Field& field);
    void read_plain(Field& field);
    bool take_separator();
    bool is_padding(char c) const;
    void skip_padding();
    bool at_line_end() const;
    void skip_line_end();

    const Source& source_;
    std::string_view text_;
    const CsvStyle& style_;
    bool is_comma_open_ = false;  // may be a decimal comma or a separator, unless quoted
    char separator_;
    bool ends_with_separator_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
    bool before_first_ = true;
    bool after_blank_ = false;  // since the last record
    ShapeComment shape_;
};

}  // namespace attn::io
