// The kinds of fields in CSV text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

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

/// Whether a header's first field marks a column of labels: it is empty, or token, word, label,
/// name, text, id or index.
bool names_labels(std::string_view text);

}  // namespace attn::io
