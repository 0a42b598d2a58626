// `attn scan`: statistics of every head of a model, over the texts of a corpus.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/batch/records.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {

struct ScanRequest {
    const Program* program = nullptr;     ///< whose commands have the keys of records; not null
    Request defaults;                     ///< the type, the kernel, and settings of the model
    std::string model;                    ///< its path
    std::string layers = "all";           ///< a list as --layers of attn model takes it
    std::vector<std::size_t> statistics;  ///< their places in head_statistics(), ascending
    bool skips_special = false;
    std::vector<BatchInput> inputs;
    Shard shard;
    std::size_t jobs = 1;
    std::string output = "-";
    bool resume = false;  ///< goes on after the records that the output has
};

/// Writes the statistics of all texts; true if no record failed. The bytes do not depend on the
/// number of jobs and threads, nor on interruptions. Errors: kinds usage, input and io for the
/// model, the corpus and the output.
bool run_scan(const ScanRequest& request);

}  // namespace attn::cli
