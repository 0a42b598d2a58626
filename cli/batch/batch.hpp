// `attn batch`: many requests, one answer a line, in the order of the requests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/batch/records.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {

struct BatchRequest {
    Request defaults;  ///< what the flags say, for records that do not say it themselves
    std::vector<std::string> flag_files;  ///< that flags come from
    std::vector<BatchInput> inputs;
    Shard shard;
    std::size_t jobs = 1;
    std::optional<std::uint64_t> max_failures;  ///< the batch ends with this many
    std::string output = "-";
    bool resume = false;        ///< the output holds answers already
    bool retry_failed = false;  ///< those that failed are made anew, in their places
    bool dry_run = false;       ///< costs instead of answers
};

/// Answers every record; true where none failed. The bytes do not depend on the jobs, and memory
/// holds the records in hand and their answers. Ends the program where a signal asks for it, after
/// the records in hand. Errors: kind io for files of requests and the output; kind input for an
/// output that does not go with the requests.
bool run_batch(BatchRequest request);

}  // namespace attn::cli
