// Goes on where an earlier run of the same batch ended.
#pragma once

#include <cstdint>
#include <string>

#include "cli/batch_records.hpp"
#include "cli/batch_results.hpp"

namespace attn::cli {

struct Answered {
    BatchCount count;
    std::uint64_t bytes = 0;  ///< of their lines, which is where the next answer goes
};

/// Passes over the records whose answers the file holds, id by id; a last line without its break is
/// torn and does not count. Errors: kind input where the file holds anything else.
Answered skip_answered(RecordReader& records, const std::string& path);

}  // namespace attn::cli
