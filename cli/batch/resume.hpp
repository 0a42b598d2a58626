// Goes on where an earlier run of the same batch ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cli/batch/answer.hpp"
#include "cli/batch/records.hpp"
#include "cli/batch/results.hpp"
#include "io/file/line_reader.hpp"

namespace attn::cli {

struct Answered {
    BatchCount count;
    std::uint64_t bytes = 0;  ///< of their lines, which is where the next answer goes
};

/// Passes over the records whose answers the file holds, id by id. A last line without its break is
/// torn and does not count, if it is the beginning of an answer to the next record; some file
/// systems leave zeros behind it. The last good answer must have the settings that this batch would
/// give it, and to a record without an id it must be the same line. Errors: kind input where the
/// file holds anything else.
Answered skip_answered(RecordReader& records, const std::string& path, Answerer& answerer);

/// The last answer that did not fail.
struct LastGood {
    Record record;
    std::string line;  ///< with its line break; empty where there is none
    std::size_t number = 0;
};

/// The answers of an earlier run that did not fail, in the order of the records.
class GoodAnswers {
public:
    explicit GoodAnswers(const std::string& path);

    /// The line of this record's answer; nothing where it failed or is missing. Records must come
    /// in their order. Errors: kind input for lines that are no answers.
    std::optional<std::string> take(const Record& record);

    /// Errors: kind input where a line is left that goes with no record, where an id does not show
    /// whose answer a line is, or where the last good answer has other settings than this batch
    /// would give it.
    void check_end(Answerer& answerer);

private:
    void find_next();

    std::string path_;
    io::LineReader lines_;
    std::string line_;  // of the next good answer; empty at the end
    std::size_t number_ = 0;
    std::string id_;    // as JSON
    std::string torn_;  // last line
    LastGood last_;
    std::size_t records_ = 0;  // that were asked for

    // A record that failed has its line's number for an id where its own could not be read, which
    // may be another's id. Then a good answer counts only in its record's place.
    std::unordered_set<std::string> failed_ids_;
    std::vector<std::pair<std::string, std::size_t>> moved_;  // good answers elsewhere: id, line
};

}  // namespace attn::cli
