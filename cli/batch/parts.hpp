// Writes the answers of --out-dir: a part when it is complete, and then its lines of the index.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/batch/index_line.hpp"
#include "cli/batch/outcome.hpp"
#include "cli/batch/part_layout.hpp"
#include "io/file/output.hpp"

namespace attn::cli {

/// An answer in the index.
struct IndexedAnswer {
    IndexLine line;
    std::string failed;  ///< the line of a failed record, with its line break; else empty
};

/// Where a batch goes on: the answers that are written, and the part that is not complete.
struct PartsSoFar {
    explicit PartsSoFar(std::size_t records_per_file) : count(records_per_file) {}

    PartCount count;                     ///< of the first part to write, of which it counts nothing
    std::uint64_t generation = 0;        ///< of all parts
    std::uint64_t records = 0;           ///< before that part
    std::vector<IndexedAnswer> answers;  ///< that the part holds already
};

/// Memory holds the part that is not complete: PartCount::part_bytes, and one answer.
class Parts {
public:
    /// `before_file` is called when a part is on the disk, before it gets its name, which may be
    /// that of a shorter part: the index must not have lines of that part then.
    Parts(const PartLayout& layout, PartsSoFar so_far, io::Output& index,
          std::function<void()> before_file)
        : layout_(layout), so_far_(std::move(so_far)), index_(index),
          before_file_(std::move(before_file)), count_(so_far_.count),
          generation_(so_far_.generation), next_(so_far_.records) {}

    /// The answer to the next record. Errors: kind io. After an error the object must not be used.
    void add(RecordOutcome outcome);

    /// Writes the last part, which may be shorter. Errors: the same.
    void finish();

private:
    struct Held {
        IndexedAnswer answer;
        io::TextBuffer bytes;  // of its arrays
    };

    void take_so_far();
    void take(RecordOutcome outcome);
    void write_part();

    const PartLayout& layout_;
    PartsSoFar so_far_;
    io::Output& index_;
    std::function<void()> before_file_;
    PartCount count_;
    std::uint64_t generation_;
    std::uint64_t next_;      // record of this shard
    bool has_more_ = false;   // than so_far_
    std::vector<Held> held_;  // of the current part
};

}  // namespace attn::cli
