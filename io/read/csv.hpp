// A matrix from CSV text: header line, label column and comments are recognised, never guessed
// from a number that fails to parse in the middle of the data.
#pragma once

#include <string>
#include <vector>

#include "core/base/thread_pool.hpp"
#include "io/file/source.hpp"
#include "io/read/number_array.hpp"
#include "io/text/row_pieces.hpp"

namespace attn::io {

struct LabelledMatrix {
    NumberArray matrix;               ///< (rows, columns), or the shape that a comment gives
    std::vector<std::string> labels;  ///< one a row; empty where the file has no label column
    std::vector<std::string> header;  ///< its fields; empty where the file has none
};

enum class Guess { automatic, yes, no };
inline constexpr Names<Guess, 3> guess_names{
    {{Guess::automatic, "auto"}, {Guess::yes, "yes"}, {Guess::no, "no"}}};

/// What the text cannot say of itself.
struct CsvStyle {
    Guess header = Guess::automatic;
    Guess labels = Guess::automatic;
};

/// Reads one matrix (RFC 4180 quoting). The separator is the one that a first line `sep=X` names,
/// else the first of tab ';' ',' that stands in the first line, else white space. Lines that are
/// blank, hold only separators or start with '#' are skipped; but a comment `# shape: 2, 6, 3`
/// before the first other line says that the rows are those of the last axis of an array of this
/// shape, of a rank that the rules take, and that there is neither header nor label.
///
/// Where the style leaves it open, the first line is a header if no field after the first is a
/// number, or if its first field is not a number and the others count 0, 1, 2, ... as pandas names
/// columns. The first column holds labels if the first row's first field is not a number, or is the
/// only quoted one, or if the header leaves it empty or calls it token, word, label, name, text, id
/// or index. Above a label column the header may be one field short, as R writes row names.
///
/// Errors: kind input, `file:line: 2 values; expected 3 as in line 1`, `file:line:column` for text
/// where a number should be, and a first line 0, 1, 2, ..., which may be pandas' header or a row.
/// A shape that the rows do not fill is one too.
LabelledMatrix read_csv(const Source& source, const ArrayRules& rules, const CsvStyle& style = {},
                        ThreadPool* workers = nullptr, std::size_t piece_size = default_piece);

}  // namespace attn::io
