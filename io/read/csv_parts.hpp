// The parts of reading CSV: kinds of fields, fields and lines, doubts, and the layout of a file.
#pragma once

#include <functional>
#include <utility>

#include "core/base/error.hpp"
#include "io/read/csv.hpp"
#include "io/text/number_text.hpp"

namespace attn::io {

enum class Cell {
    word,
    number,  ///< as parse_loose_number reads it, including nan and inf
    /// A damaged number (1 000, 1_000, 50%, 1/2, 0x10, $3, 1.5abc, a minus of Unicode, true) or a
    /// missing value (nothing, NA, null, None, #N/A, or marks alone: . - ?).
    other
};

/// A number as Fortran writes it in double precision, with the exponent of other programs: 1.0e-01
/// of 1.0D-01. Any other text is left as it is; 1d5, without a point or a sign, may be a word.
std::string plain_number(std::string_view text);

/// A damaged number has a digit before any letter: x1, V1, dim_0, #1 and _1 are words, and so is a
/// date such as 2024-05-31.
Cell cell_of(std::string_view text);

/// "true", "False": the value; empty for other text.
std::optional<bool> boolean_of(std::string_view text);

/// "0,43".
bool has_decimal_comma(std::string_view text);

/// "1,000", which may be 1000 or 1.000: 1 to 3 digits, the first of which is not 0, and 3 more.
bool may_be_grouped(std::string_view text);

/// Whether quotes around the text are due to a comma or separator in a number, and make no label of
/// it: "0,43", "1,000".
bool is_number_to_quote(std::string_view text, char separator);

/// Whether a field of a header is empty, as pandas names its index, or as it names it when it has
/// read it as data: "Unnamed: 0", "Unnamed: 0.1".
bool names_index(std::string_view text);

/// Whether a header's first field marks a column of labels: it names an index, or is token,
/// token_id, word, label, name, text, id, index or idx.
bool names_labels(std::string_view text);

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

/// The first line of the text, without its end; takes it and its end from `rest`.
std::string_view take_line(std::string_view& rest);

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

    const Source& source() const { return source_; }
    const CsvStyle& style() const { return style_; }

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
    bool is_padding(char c) const { return c == ' ' || (c == '\t' && separator_ != '\t'); }
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

inline Cell cell_of(const Field& field) {
    return cell_of(std::string_view(field.text));
}

/// Whether its quotes may make a name or a label of it.
bool is_quoted_word(const Field& field, char separator);

/// The number of fields of each kind in a line, from `first` on.
struct CellCounts {
    std::size_t words = 0, numbers = 0, others = 0;
    bool all_quoted = true;  ///< as above, or for the sake of a separator in damaged numbers
    bool has_quoted_number = false;  ///< for that sake

    CellCounts(const CsvLine& line, std::size_t first, char separator);

    bool are_words() const { return numbers + others == 0; }
    bool are_numbers() const { return words + others == 0; }
};

struct CsvFlag {
    std::string_view text;
    void (*set)(CsvStyle&);
};

inline constexpr CsvFlag header_yes{"--csv-header yes", [](CsvStyle& s) { s.header = Guess::yes; }};
inline constexpr CsvFlag header_no{"--csv-header no", [](CsvStyle& s) { s.header = Guess::no; }};
inline constexpr CsvFlag labels_yes{"--csv-labels yes", [](CsvStyle& s) { s.labels = Guess::yes; }};
inline constexpr CsvFlag labels_no{"--csv-labels no", [](CsvStyle& s) { s.labels = Guess::no; }};
inline constexpr CsvFlag index_yes{"--csv-index yes", [](CsvStyle& s) { s.index = Guess::yes; }};
inline constexpr CsvFlag index_no{"--csv-index no", [](CsvStyle& s) { s.index = Guess::no; }};
inline constexpr CsvFlag decimal_comma{"--csv-decimal ,",
                                       [](CsvStyle& s) { s.decimal = DecimalMark::comma; }};
inline constexpr CsvFlag decimal_point{"--csv-decimal .",
                                       [](CsvStyle& s) { s.decimal = DecimalMark::point; }};
inline constexpr CsvFlag quotes_no{"--csv-quotes no", [](CsvStyle& s) { s.quotes = Quotes::no; }};
inline constexpr CsvFlag comments_yes{"--csv-comments", [](CsvStyle& s) { s.comments = true; }};
inline constexpr CsvFlag comments_no{"--no-csv-comments", [](CsvStyle& s) { s.comments = false; }};

/// Another reading: "--csv-header yes reads the line as a header".
struct CsvWay {
    std::vector<CsvFlag> flags;
    std::string_view object, role;
    std::size_t lines = 0;  ///< that it must read after the line in doubt
};

inline CsvWay as_header(std::size_t lines = 1) {
    return {{header_yes}, "the line", "as a header", lines};
}

inline CsvWay as_decimal_comma() {
    return {{decimal_comma}, "it", "as a number", 1};
}

inline CsvWay as_comment() {
    return {{comments_yes}, "it", "as a comment"};
}

/// An ambiguous text. what() is "found; expected ...", without flags.
class CsvDoubt : public Error {
public:
    /// `offset`: in the line at `location`. `meanings`: ", which may be ..." if there are several.
    CsvDoubt(std::string location, std::size_t offset, std::string found, std::string meanings,
             std::string expected, std::vector<CsvWay> ways)
        : Error(ErrorKind::input, std::move(location), found, "; expected ", expected),
          offset_(offset), found_(std::move(found)), meanings_(std::move(meanings)),
          expected_(std::move(expected)), ways_(std::move(ways)) {}

    /// Throws it with the flags of those ways that get past it, if the style has flags: `read`
    /// reads the first lines of the source, and those from this one on, by another style.
    [[noreturn]] void resolve(
        const Source& source, const CsvStyle& style,
        const std::function<void(const Source&, const CsvStyle&)>& read) const;

private:
    std::size_t offset_;
    std::string found_, meanings_, expected_;
    std::vector<CsvWay> ways_;

    friend class CsvTrial;
};

/// A field that may not be a number.
class CsvDamage : public CsvDoubt {
    using CsvDoubt::CsvDoubt;
};

/// "a number with a decimal point", if the field has a decimal comma.
std::string expected_number(const Field& field);

/// "found 'NA'".
std::string found_text(const Field& field);

/// ", which may be a missing value or a label".
std::string meanings_of(const Field& field, const std::string& otherwise);

/// Always throws CsvDamage: the field is not a number.
[[noreturn]] void refuse_number(const Field& field, const Source& source);

/// The layout found in the first lines.
struct CsvLayout {
    CsvLine header;                        ///< without fields if there is none
    CsvLine row;                           ///< the first one
    std::optional<bool> labelled;          ///< empty if the whole first column must be examined
    std::optional<std::size_t> rows = {};  ///< the number that a first line of sizes gives
    std::size_t index_columns = 0;         ///< before the labels or numbers
    std::size_t named_index = 0;           ///< columns of an index that only the header shows
};

/// Reads up to the first row; `reader` continues after it. csv.hpp has the rules. Errors: kind
/// input if the text is ambiguous, or there is no row.
CsvLayout read_layout(CsvLineReader& reader);

/// A line that begins with '#' after the first row, and is neither a comment nor a row.
/// `may_be_labelled`: it would be a row if its first field were a label. Always throws.
[[noreturn]] void refuse_hash_line(const CsvLine& line, bool may_be_labelled,
                                   const CsvLineReader& reader);

/// The layout of regular rows, known from the first one.
struct CsvRowStyle {
    char separator;      ///< ' ': any white space
    std::size_t fields;  ///< of every row, the label included
    bool labelled;
    bool ends_with_separator = false;  ///< every row, without a field after it
};

/// The matrix in `text`, which has no comments, blank lines or quotes; empty if anything in it is
/// unexpected. The numbers equal those of read_csv.
std::optional<LabelledMatrix> read_csv_rows(std::string_view text, const CsvRowStyle& style,
                                            const ArrayRules& rules, ThreadPool* workers = nullptr,
                                            std::size_t piece_size = default_piece);

}  // namespace attn::io
