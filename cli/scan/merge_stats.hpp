// Joins files of statistics, as `attn merge` does.
#pragma once

#include <vector>

#include "cli/args/args.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

/// Writes the sums of all files to --output: the bytes that one scan of all their texts writes, in
/// any grouping and order. Errors: kind input for files of different models, statistics or
/// corpora, for the same shard in two files, and for sums beyond their range.
void merge_stats(const std::vector<io::InputFile>& files, const Args& args);

}  // namespace attn::cli
