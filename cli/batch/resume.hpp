// Continues a batch after an interrupted run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cli/batch/answer.hpp"
#include "cli/batch/part_layout.hpp"
#include "cli/batch/records.hpp"
#include "cli/batch/results.hpp"
#include "cli/batch/resumed_parts.hpp"
#include "io/file/line_reader.hpp"

namespace attn::cli {

struct Answered {
    BatchCount count;
    std::uint64_t bytes = 0;  ///< of their lines; the next answer starts here
};

/// Skips the records whose answers the file holds, compared by id. A last line without a line break
/// is ignored if it is the beginning of an answer to the next record. Some file systems leave zeros
/// after it. The last successful answer must have the settings that this batch would give it. For a
/// record without an id, the whole line must be the same. `parts`: the file is an index, whose
/// answers are passed there; null: it holds answers. Errors: kind input if the file holds anything
/// else.
Answered skip_answered(RecordReader& records, const std::string& path, Answerer& answerer,
                       ResumedParts* parts);

/// The last successful answer.
struct LastGood {
    Record record;
    std::string line;  ///< with its line break; empty if there is none
    std::size_t number = 0;
};

/// The successful answers of an earlier run, in the order of the records.
class GoodAnswers {
public:
    /// `is_index`: of --out-dir.
    GoodAnswers(const std::string& path, bool is_index);

    /// The line of this record's answer; empty if it failed or is missing. Records must be passed
    /// in order. Errors: kind input for lines that are not answers.
    std::optional<std::string> take(const Record& record);

    /// Errors: kind input if a line remains that belongs to no record, or an id does not identify a
    /// line's record. Also if the last successful answer has other settings than this batch would
    /// give it.
    void check_end(Answerer& answerer);

private:
    void find_next();

    std::string path_;
    bool is_index_;
    io::LineReader lines_;
    std::string line_;  // of the next successful answer; empty at the end
    std::size_t number_ = 0;
    std::string id_;    // as JSON
    std::string torn_;  // last line, incomplete
    LastGood last_;
    std::size_t records_ = 0;  // passed to `take` so far

    // A failed record whose id could not be read has its line number as its id, which may be
    // another record's id. In this case, a successful answer counts only in its record's position.
    std::unordered_set<std::string> failed_ids_;
    std::vector<std::pair<std::string, std::size_t>> moved_;  // successful ones elsewhere: id, line
};

}  // namespace attn::cli
