// A matrix from CSV text: header line, label column and comments are recognised, never guessed
// from a number that fails to parse in the middle of the data.
#pragma once

#include <optional>

#include "core/base/thread_pool.hpp"
#include "io/file/source.hpp"
#include "io/read/number_array.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

struct LabelledMatrix {
    NumberArray matrix;               ///< (rows, columns), or the shape that a comment gives
    std::vector<std::string> labels;  ///< one per row; empty if the file has no label column
    std::vector<std::string> header;  ///< its fields; empty if the file has none
    std::size_t header_line = 0;      ///< from 1; 0 if the file has none
    std::size_t index_columns = 0;    ///< left out before the labels or numbers
    bool counts = false;              ///< the labels are a column that was found to count the rows
    std::string doubt = {};           ///< what may be no data, though it is read as data, or empty
};

enum class Guess { automatic, yes, no };
inline constexpr Names<Guess, 3> guess_names{
    {{Guess::automatic, "auto"}, {Guess::yes, "yes"}, {Guess::no, "no"}}};

enum class DecimalMark { point, comma };
inline constexpr Names<DecimalMark, 2> decimal_mark_names{
    {{DecimalMark::point, "."}, {DecimalMark::comma, ","}}};

/// What '"' is: the quotes of a field, or text like any other.
enum class Quotes { yes, no };
inline constexpr Names<Quotes, 2> quotes_names{{{Quotes::yes, "yes"}, {Quotes::no, "no"}}};

/// How to read ambiguous text.
struct CsvStyle {
    Guess header = Guess::automatic;
    Guess labels = Guess::automatic;
    Guess index = Guess::automatic;
    std::optional<DecimalMark> decimal = {};  ///< empty: a point; some columns are then in doubt
    Quotes quotes = Quotes::yes;
    /// Whether lines that begin with '#' are comments; empty: those before the first line are.
    std::optional<bool> comments = {};
    /// Whether flags may set these. Otherwise the file is a mask or a cache: a first row 0, 1, ...
    /// is data, and errors name no flags.
    bool has_flags = true;
    /// Whether the reader shows left_out(), without which no column is found to count the rows.
    bool is_noted = false;

    bool operator==(const CsvStyle& other) const = default;
};

/// Reads one matrix (RFC 4180 quoting). The separator is that of a first line `sep=X`, else the
/// first of tab ';' ',' in the first line, else white space. Blank lines are skipped. A separator
/// at the end of every line is not followed by a field. With decimal commas, ',' separates fields
/// if one is next to a quoted field. A line "2 3" above 2 rows of a label and 3 numbers, as
/// word2vec writes it, is their shape. Lines that begin with '#' before the first line are
/// comments. A comment `# shape: 2, 6, 3` gives the shape of the array, of a rank that the rules
/// allow, with the rows as its last axis; then there is neither header nor label.
///
/// If the style leaves it open:
/// - The first line is a header if all its fields are words (csv_parts.hpp). If its first field is
///   empty or names labels (token, word, label, name, text, id, index), the others may also count
///   0, 1, 2, ..., or all be quoted above unquoted numbers.
/// - The first column holds labels if such a header names it; if it holds words and no unquoted
///   number; or if it alone is quoted, for another reason than a comma in a number. Above labels
///   the header may be one field short, as in R's output with row names.
/// - The first line is a row if all its fields after the first are numbers.
/// - An index is read as labels, or left out if labels follow it: columns of integers that a header
///   names "" or "Unnamed: 0", "Unnamed: 0.1", ..., as pandas does; and, if the style is_noted, a
///   first column of two rows or more that counts them from 0 or 1, next to decimals.
///
/// Errors: kind input, with the flags of the readings that get past them (csv_doubt.cpp), for every
/// other text: a first line of names and numbers, damaged numbers or missing values, or of 0, 1, 2,
/// ...; numbers and words in the first column; two columns of integers that are rather one of
/// numbers with a decimal comma; lines that begin with '#' and may be rows, begin with a
/// spreadsheet's error value such as #N/A, or come after the first row; a number with a decimal
/// point in a file of decimal commas.
/// `file:line: 2 values; expected 3 as in line 1`, `file:line:column` for text where a number
/// should be, a row of empty fields, a blank line among rows of one number, and a shape that the
/// rows do not fill.
LabelledMatrix read_csv(const Source& source, const ArrayRules& rules, const CsvStyle& style = {},
                        ThreadPool* workers = nullptr, std::size_t piece_size = default_piece);

/// For a note: the line and column that are not data, and the flags that read them as data, if the
/// style leaves it open; or those that may be none. Empty if everything is data.
std::string left_out(const LabelledMatrix& read, const Source& source, const CsvStyle& style);

}  // namespace attn::io
