// Writes the answers of a batch in the order of the records, in whatever order they are completed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/batch/outcome.hpp"
#include "cli/batch/parts.hpp"
#include "cli/batch/progress.hpp"
#include "cli/batch/stop.hpp"
#include "io/file/output.hpp"

namespace attn::cli {

/// The records written so far.
struct BatchCount {
    std::uint64_t records = 0, failed = 0;
    std::string first_problem;
};

/// Thread-safe.
class BatchResults {
public:
    /// `already` counts the answers that the output holds before the first new one. `parts` takes
    /// the answers instead of the output; null: none.
    BatchResults(io::Output& out, Parts* parts, const BatchCount& already,
                 std::optional<std::uint64_t> max_failures, Progress& progress, Stop& stop)
        : out_(out), parts_(parts), count_(already), before_(already.records),
          max_failures_(max_failures), progress_(progress), stop_(stop) {}

    /// Adds the answers to consecutive records from number `first` on, counted from 0. Waits while
    /// too many answers are queued after a missing one. Errors: those of the output.
    void put(std::uint64_t first, std::vector<RecordOutcome> answers);

    /// While idle, `put` writes at once, because the next record may take long to arrive. Becoming
    /// idle writes what is ready.
    void set_idle(bool idle);

    /// Writes the rest. Errors: those of the output, and of an answer that ended the batch.
    void finish();
    BatchCount count() const;

private:
    void append(std::vector<RecordOutcome>& answers);
    void write(std::string_view lines);
    void add_to_parts(RecordOutcome& answer);
    void write_large(io::TextBuffer& line);
    void write_ready();
    bool has_room(std::uint64_t first) const;

    io::Output& out_;
    Parts* parts_;
    BatchCount count_;
    std::uint64_t before_;  // records of an earlier run
    std::optional<std::uint64_t> max_failures_;
    Progress& progress_;
    Stop& stop_;

    mutable std::mutex mutex_;
    std::condition_variable room_;
    std::map<std::uint64_t, std::vector<RecordOutcome>> ahead_;  // after a missing one
    std::size_t bytes_ahead_ = 0;
    std::uint64_t next_ = 0;
    std::string ready_;
    std::chrono::steady_clock::time_point last_write_ = std::chrono::steady_clock::now();
    bool idle_ = false;
    bool ended_ = false;  // by too many failures, or by `end_`
    std::exception_ptr end_;
    bool is_broken_ = false;  // a write to the output failed
};

}  // namespace attn::cli
