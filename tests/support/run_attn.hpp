// Runs the real binary.
#pragma once

#include "tests/support/support.hpp"

namespace attn::test {

struct Outcome {
    int code = -1;  ///< exit code, or 128 + signal
    std::string out, err;
};

/// Runs attn with these arguments in the scratch folder. Standard input is `input`; standard
/// output goes to `out_path` where one is given (its text is then not read back).
Outcome run_attn(const Words& arguments, const std::string& input = "",
                 const std::string& out_path = "");

/// Which standard files are a pseudo-terminal of this width; COLUMNS is not set for them.
struct Terminal {
    bool in = true, out = true, err = false;
    unsigned short columns = 80;
    unsigned short rows = 24;
};

/// The same, but for these files. What is shown on the terminal comes as `out`, or as `err`
/// where standard output is none.
Outcome run_on_terminal(const Words& arguments, const Terminal& terminal = {},
                        const std::string& input = "");

/// Runs a line of shell in which attn is on the PATH.
Outcome run_shell(const std::string& line);

}  // namespace attn::test
