// A result of `attn batch --out-dir`: a line of its index, whose arrays are in another file.
#pragma once

#include <string>

#include "io/read/input_file.hpp"

namespace attn::cli {

/// Reads the results that an index of attn batch --out-dir names. It keeps the last file open,
/// since the lines of an index name the same file many times.
class IndexedResults {
public:
    /// The arrays that a line of an index names; another line is returned as it is. Errors: kind
    /// input if the file lacks them; kind io if it cannot be read.
    io::InputFile result_of(io::InputFile line);

private:
    std::string path_;
    io::InputFile part_;
};

}  // namespace attn::cli
