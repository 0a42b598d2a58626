// The requests of a batch, one after the other: lines of files, or files.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/batch/stop.hpp"
#include "cli/batch/unique_ids.hpp"
#include "io/file/line_reader.hpp"
#include "io/file/source.hpp"

namespace attn::cli {

struct BatchInput {
    std::string path;  ///< "-" is standard input
    bool is_record;    ///< the file is one record, whatever it holds
};

/// Whether it can be read again, as pipes and standard input cannot.
bool is_regular_file(const BatchInput& input);

/// One record of `shards`, every shards-th, from the shard-th on; shards count from 1.
struct Shard {
    std::size_t shard = 1, shards = 1;
};

/// "requests.ndjson:7", or the file where `line` is 0.
std::string record_place(const std::string& file, std::size_t line);

struct Record {
    std::string file;      ///< that it stands in, or that it is
    std::size_t line = 0;  ///< in the file; 0: the record is the whole file
    std::string text;      ///< of the line
    std::size_t size = 0;  ///< of the line in bytes; where the text is missing, there were too many
    std::string id;        ///< as JSON: that it has where it does not say one itself
    std::optional<std::string> answer;  ///< its line, where that is known already

    std::string place() const { return record_place(file, line); }
};

/// The text of the record, whatever it is. Errors: those of read_source, for a record that is a
/// file.
io::Source source_of(const Record& record);

/// The id in the record, as JSON; empty where there is none that can be read.
std::optional<std::string> given_id(const Record& record);

/// The same, or the default id.
std::string id_of(const Record& record);

class RecordReader {
public:
    /// Files are opened one after the other, as their turn comes. Errors: kind io for files of
    /// lines that are not there or may not be read.
    RecordReader(std::vector<BatchInput> inputs, const Shard& shard, const Stop& stop);

    /// The next record; `end` also where the end is wished for. Where it may not wait, `none_yet`
    /// says that it would have to. Blank lines are no records.
    /// Errors: kind io where reading a file of lines fails.
    io::Next next(Record& record, bool may_wait = true);

    /// From here on `next` throws an error of kind input for a record whose id an earlier one has.
    void require_unique_ids() { ids_.emplace(); }

    /// `next` gives this record again.
    void put_back(Record record) { put_back_ = std::move(record); }

    bool at_end() const { return input_ == inputs_.size() && !put_back_; }

    /// The part of all that has been given out, 0 to 1; empty where nobody knows.
    std::optional<double> part() const;

private:
    io::Next next_of_any_shard(Record& record, bool may_wait);
    io::Next next_line(Record& record, bool may_wait);

    std::vector<BatchInput> inputs_;
    Shard shard_;
    const Stop& stop_;
    std::size_t input_ = 0;                  // whose turn it is
    std::unique_ptr<io::LineReader> lines_;  // of this input; null where it is not open
    std::size_t given_ = 0;
    std::optional<Record> put_back_;
    std::optional<UniqueIds> ids_;  // of this shard; empty where they may repeat
};

}  // namespace attn::cli
