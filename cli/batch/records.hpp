// The requests of a batch or a corpus in order, and what runs of many records share: a stop by
// signals, the progress, and the memory.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/args/args.hpp"
#include "core/base/memory.hpp"
#include "io/file/screen.hpp"
#include "io/file/source.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

/// During its lifetime, SIGINT, SIGTERM and SIGHUP request a stop. A second signal ends the program
/// at once, by `io::end_by_signal`. Signals that were ignored when the program started stay
/// ignored. Only one object may exist at a time.
class Stop {
public:
    Stop();
    Stop(const Stop&) = delete;
    Stop& operator=(const Stop&) = delete;
    ~Stop();

    bool wanted() const;
    void want();

    /// After a signal, reports it, with the way to go on, and ends the program by that signal.
    void end_by_signal(std::uint64_t records, const std::string& way) const;

    /// A file descriptor that is readable once a stop is requested, to wait for together with
    /// others.
    int file() const;

    /// The same, only for a stop that a signal requested.
    int signal_file() const;

private:
    std::array<struct sigaction, 3> before_{};
};

/// The progress of a batch on standard error.
class Progress {
public:
    /// Sets the completed part, 0 to 1, if known. May be called while another thread calls `show`.
    void set_part(std::optional<double> part) { part_ = part.value_or(unknown); }

    void show(std::uint64_t records);

private:
    static constexpr double unknown = -1;

    std::atomic<double> part_{unknown};
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    io::ProgressLine line_{std::chrono::milliseconds(0), io::ProgressLine::End::keep};
};

/// Writes "attn: TEXT", one line, to standard error.
void report(const std::string& text);

/// "[=====>    ]  52 %  52,000 records  104,000/s  0:00:01 left", at most `columns` wide.
std::string progress_text(std::uint64_t records, double seconds, std::optional<double> part,
                          std::size_t columns);

/// Jobs have equal shares of the memory. Work that needs more waits until it is the only one.
class SharedMemory {
public:
    explicit SharedMemory(std::size_t jobs) : jobs_(jobs) {}

    template <class Work>
    auto run(const Work& work) {
        try {
            const std::shared_lock beside_others(large_);
            const MemoryShare share(jobs_);
            return work();
        } catch (const BeyondShare&) {
            const std::unique_lock alone(large_);
            return work();
        }
    }

private:
    std::size_t jobs_;
    std::shared_mutex large_;  // exclusive for large work
};

struct BatchInput {
    std::string path;  ///< "-" is standard input
    bool is_record;    ///< the file is one record, whatever its contents
};

/// Whether the input can be read again, unlike pipes and standard input.
bool is_regular_file(const BatchInput& input);

/// Every shards-th record, starting with number `shard`; shards count from 1.
struct Shard {
    std::size_t shard = 1, shards = 1;
};

/// Of --shard, as "3/8": the third of eight. Errors: kind usage.
Shard shard_in(const Args& args);

/// The file of --resume, otherwise of --output; "-" without either. Errors: kind usage for what is
/// not the name of a file.
std::string output_in(const Args& args);

class Record {
public:
    std::string file;          ///< that contains the record, or is the record
    std::size_t line = 0;      ///< in the file; 0 if the record is the whole file
    std::string text;          ///< of the line
    std::size_t size = 0;      ///< bytes of the line; if the text is shorter, the line was too long
    std::string default_id;    ///< as JSON
    std::uint64_t number = 0;  ///< among all records, from 0
    std::optional<std::string> answer;  ///< its line, if already known

    /// "requests.ndjson:7", or the file.
    std::string location() const;

    /// As JSON: the record's own id or the default one, and its meta; empty without one that can be
    /// read. The rest of the text may be invalid.
    const std::string& id() const { return own_id().empty() ? default_id : own_id(); }
    const std::string& own_id() const;
    std::string meta() const;

    /// To be called when the text changes.
    void forget() {
        own_id_.reset();
        answer.reset();
    }

    /// The line; empty for a record that is a file. Errors: kind input for a line that is too long,
    /// is not JSON, or is only part of a request.
    std::optional<io::InputFile> open_line() const;

private:
    mutable std::optional<std::string> own_id_;  // once it is read
};

class RecordReader {
public:
    /// Opens each file when its turn comes. Errors: kind io for files of lines that are missing or
    /// cannot be read; kind usage for a mode's name instead of a file.
    RecordReader(std::vector<BatchInput> inputs, const Shard& shard, const Stop& stop);

    /// The next record; `end` also if a stop was requested. `none_yet` if it must not wait and
    /// would have to. Skips blank lines. Errors: kind io if reading a file of lines fails.
    io::Next next(Record& record, bool may_wait = true);

    /// From now on `next` throws an error of kind input for a record with the id of an earlier one.
    /// Memory holds every id, about 100 bytes each.
    void require_unique_ids() { ids_.emplace(); }

    /// Makes `next` return this record again.
    void put_back(Record record) { put_back_ = std::move(record); }

    /// Whether `next` threw because a file of lines could not be read, or was damaged.
    bool is_damaged() const { return is_damaged_; }

    bool at_end() const { return input_ == inputs_.size() && !put_back_; }

    /// The completed part of all inputs, 0 to 1; empty if unknown.
    std::optional<double> part() const;

private:
    struct Location {
        std::size_t file, line;  // file: an index of `files_`
    };

    io::Next next_of_any_shard(Record& record, bool may_wait);
    io::Next next_line(Record& record, bool may_wait);
    void require_new_id(const Record& record);

    std::vector<BatchInput> inputs_;
    Shard shard_;
    const Stop& stop_;
    std::size_t input_ = 0;                  // the current input
    std::unique_ptr<io::LineReader> lines_;  // of this input; null if it is not open
    std::size_t given_ = 0;
    bool is_damaged_ = false;
    std::optional<Record> put_back_;
    // The ids of this shard; empty if they may repeat.
    std::optional<std::unordered_map<std::string, Location>> ids_;
    std::vector<std::string> files_;  // one per run of consecutive records
};

}  // namespace attn::cli
