// The requests of a batch in order: lines of files, or whole files.
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
#include "io/read/input_file.hpp"

namespace attn::cli {

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

/// "3/8": the third of eight shards; empty for other text.
std::optional<Shard> shard_of(const std::string& text);

/// "requests.ndjson:7", or the file if `line` is 0.
std::string record_place(const std::string& file, std::size_t line);

struct Record {
    std::string file;      ///< that contains the record, or is the record
    std::size_t line = 0;  ///< in the file; 0 if the record is the whole file
    std::string text;      ///< of the line
    std::size_t size = 0;  ///< bytes of the line; if the text is shorter, the line was too long
    std::string id;        ///< as JSON: the default for a record that does not specify one
    std::optional<std::string> answer;  ///< its line, if already known

    std::string place() const { return record_place(file, line); }
};

/// The text of the record, whether valid or not. Errors: those of read_source, for a record that is
/// a file.
io::Source source_of(const Record& record);

/// The line of a record; empty for a record that is a file. Errors: kind input for a line that is
/// too long, is not JSON, or is only part of a request.
std::optional<io::InputFile> line_of(const Record& record);

/// The record's own id as JSON; empty if it has none that can be read.
std::optional<std::string> given_id(const Record& record);

/// The record's own id, or the default id.
std::string id_of(const Record& record);

/// The record's meta as JSON; empty if it has none that can be read.
std::string meta_of(const Record& record);

class RecordReader {
public:
    /// Opens each file when its turn comes. Errors: kind io for files of lines that are missing or
    /// cannot be read; kind usage for a mode's name instead of a file.
    RecordReader(std::vector<BatchInput> inputs, const Shard& shard, const Stop& stop);

    /// The next record; `end` also if a stop was requested. `none_yet` if it must not wait and
    /// would have to. Skips blank lines. Errors: kind io if reading a file of lines fails.
    io::Next next(Record& record, bool may_wait = true);

    /// From now on `next` throws an error of kind input for a record with the id of an earlier one.
    void require_unique_ids() { ids_.emplace(); }

    /// Makes `next` return this record again.
    void put_back(Record record) { put_back_ = std::move(record); }

    bool at_end() const { return input_ == inputs_.size() && !put_back_; }

    /// The completed part of all inputs, 0 to 1; empty if unknown.
    std::optional<double> part() const;

private:
    io::Next next_of_any_shard(Record& record, bool may_wait);
    io::Next next_line(Record& record, bool may_wait);

    std::vector<BatchInput> inputs_;
    Shard shard_;
    const Stop& stop_;
    std::size_t input_ = 0;                  // the current input
    std::unique_ptr<io::LineReader> lines_;  // of this input; null if it is not open
    std::size_t given_ = 0;
    std::optional<Record> put_back_;
    std::optional<UniqueIds> ids_;  // of this shard; empty if they may repeat
};

}  // namespace attn::cli
