// A result of `attn batch --out-dir`: a line of its index, whose arrays are in another file.
#pragma once

#include "io/read/input_file.hpp"

namespace attn::cli {

/// The arrays of a line of an index (attn.index/1), by attn's names, in the part that it names,
/// which is in the index's folder; any other file as it is. Errors: kind io if the part cannot be
/// read; kind input if it lacks an array.
io::InputFile result_of_index(io::InputFile line);

}  // namespace attn::cli
