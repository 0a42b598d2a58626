// A matrix from CSV text: header line, label column and comments are recognised, never guessed
// from a number that fails to parse in the middle of the data.
#pragma once

#include <string>
#include <vector>

#include "io/number_array.hpp"
#include "io/source.hpp"

namespace attn::io {

struct LabelledMatrix {
    NumberArray matrix;               ///< (rows, columns)
    std::vector<std::string> labels;  ///< one a row; empty where the file has no label column
};

/// Reads one matrix (RFC 4180 quoting). The separator is the first of ',' tab ';' that stands in
/// the first line, else white space. Lines that are blank or start with '#' are skipped. The first
/// line is a header where no field after the first is a number, or where its first field is not a
/// number and the others count 0, 1, 2, ... as pandas names columns. The first column holds labels
/// where the first row's first field is quoted or no number, or the header's first field is empty.
/// Errors: kind input, `file:line: 2 values; expected 3 as in line 1`, `file:line:column` for text
/// where a number should be.
LabelledMatrix read_csv(const Source& source, const ArrayRules& rules);

}  // namespace attn::io
