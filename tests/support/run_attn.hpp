// Runs the real binary.
#pragma once

#include <string>
#include <vector>

namespace attn::test {

struct Outcome {
    int code = -1;  ///< exit code, or 128 + signal
    std::string out, err;
};

/// Runs attn with these arguments in the scratch folder. Standard input is `input`; standard
/// output goes to `out_path` where one is given (its text is then not read back).
Outcome run_attn(const std::vector<std::string>& arguments, const std::string& input = "",
                 const std::string& out_path = "");

/// Runs a line of shell in which attn is on the PATH.
Outcome run_shell(const std::string& line);

}  // namespace attn::test
