// The parts of attn partial, joined.
#pragma once

#include <vector>

#include "cli/args/args.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

/// Joins parts of one question, in any order, and writes --output: the question's result if they
/// have all keys, otherwise a part again, with its context in float64. Errors: kind input for
/// damaged files, parts of several questions and keys in two parts; kind usage if keys are missing
/// and the output's format holds no part.
void merge_parts(const std::vector<io::InputFile>& files, const Args& args);

}  // namespace attn::cli
