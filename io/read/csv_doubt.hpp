// Fields of a line of CSV by their kind, and errors for ambiguous text, which name the flags that
// get past them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "io/read/csv.hpp"
#include "io/read/csv_cells.hpp"
#include "io/read/csv_lines.hpp"

namespace attn::io {

inline Cell cell_of(const Field& field) {
    return cell_of(std::string_view(field.text));
}

/// Whether its quotes may make a name or a label of it.
bool is_quoted_word(const Field& field, char separator);

/// The number of fields of each kind in a line, from `first` on.
struct CellCounts {
    std::size_t words = 0, numbers = 0, marks = 0, others = 0;
    bool all_quoted = true;  ///< as above, or for the sake of a separator in damaged numbers
    bool has_quoted_number = false;  ///< for that sake

    CellCounts(const CsvLine& line, std::size_t first, char separator);

    bool are_words() const { return numbers + marks + others == 0; }
    bool are_numbers() const { return words + marks + others == 0; }
};

struct CsvFlag {
    std::string_view text;
    void (*set)(CsvStyle&);
};

inline constexpr CsvFlag header_yes{"--csv-header yes", [](CsvStyle& s) { s.header = Guess::yes; }};
inline constexpr CsvFlag header_no{"--csv-header no", [](CsvStyle& s) { s.header = Guess::no; }};
inline constexpr CsvFlag labels_yes{"--csv-labels yes", [](CsvStyle& s) { s.labels = Guess::yes; }};
inline constexpr CsvFlag labels_no{"--csv-labels no", [](CsvStyle& s) { s.labels = Guess::no; }};
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
    /// `offset`: in the line at `where`. `meanings`: ", which may be ..." if there are several.
    CsvDoubt(std::string where, std::size_t offset, std::string found, std::string meanings,
             std::string expected, std::vector<CsvWay> ways)
        : Error(ErrorKind::input, std::move(where), found + "; expected " + expected),
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

}  // namespace attn::io
