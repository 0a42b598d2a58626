// `attn scan`: statistics of every head of a model, over the texts of a corpus.
#pragma once

#include "cli/batch/records.hpp"
#include "cli/model/model.hpp"
#include "cli/request/request.hpp"
#include "cli/scan/stats.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::cli {

struct ScanRequest {
    const Program* program = nullptr;     ///< whose commands have the keys of records; not null
    Request defaults;                     ///< the type, the kernel, and settings of the model
    std::string model;                    ///< its path
    std::string layers = "all";           ///< a list as --layers of attn model takes it
    std::vector<std::size_t> statistics;  ///< their indices in head_statistics(), ascending
    bool skips_special = false;
    std::optional<std::uint64_t> truncate;  ///< tokens that are kept of a longer text
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

/// Scans texts one by one; each job has its own. `request` must outlive it.
class TextScanner {
public:
    TextScanner(const ScanRequest& request, std::size_t threads)
        : request_(request), workers_(threads) {}

    /// Errors: those of the record. Throws BeyondShare.
    TextSums scan(const Record& record);

private:
    ModelAsked ask(const Record& record) const;

    const ScanRequest& request_;
    ThreadPool workers_;
    ModelCache models_;
};

}  // namespace attn::cli
