// `attn batch`: many requests, one answer per line, in the order of the requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/batch/part_layout.hpp"
#include "cli/batch/records.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {

struct BatchRequest {
    const Program* program = nullptr;     ///< whose commands have the keys of records; not null
    Request defaults;                     ///< given by flags, for records that do not specify them
    std::vector<std::string> flag_files;  ///< files that flags were read from
    std::vector<BatchInput> inputs;
    Shard shard;
    std::size_t jobs = 1;
    std::optional<std::uint64_t> max_failures;  ///< the batch ends after this many failures
    std::string output = "-";                   ///< with `parts`, their index
    std::optional<PartLayout> parts;            ///< of --out-dir
    bool resume = false;        ///< continue after the answers that the output holds
    bool retry_failed = false;  ///< failed records are answered again, in their positions
    bool dry_run = false;       ///< costs instead of answers
};

/// Answers every record; true if none failed. The bytes do not depend on the number of jobs. Memory
/// holds only the records in progress and their answers. A signal ends the program after the
/// records in progress. Errors: kind io for request files and the output; kind input for an output
/// that does not match the requests.
bool run_batch(BatchRequest request);

}  // namespace attn::cli
