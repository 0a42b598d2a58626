// `attn batch`: many requests, one answer per line, in the order of the requests.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include "cli/batch/records.hpp"
#include "cli/model/model.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "io/file/output.hpp"
#include "io/model/loaded_models.hpp"
#include "io/read/json_document.hpp"
#include "io/text/row_pieces.hpp"
#include "io/write/array_bytes.hpp"
#include "io/write/output_formats.hpp"

namespace attn::cli {

/// Files of --out-dir: parts, which hold arrays of many answers, and an index with a line for each
/// answer.
struct PartLayout {
    std::string folder;
    const io::OutputFormat* format = nullptr;  ///< one that packs; not null
    std::size_t records_per_file = 1000;
    Shard shard;  ///< several shards may share the folder
    /// Whether a file may hold many records, whose arrays are then at known offsets.
    bool holds_many() const { return format->write_archive != nullptr; }
    /// The path of the index: "out/index.ndjson", "out/index-2-of-8.ndjson".
    std::string index() const;

    /// A file's name in the folder: "part-00003.npz", "part-2-of-8-00003.npz".
    std::string part_name(std::uint64_t part) const;
    std::optional<std::uint64_t> part_named(const std::string& name) const;

    /// The number of the shard's n-th record among all records, both from 0.
    std::uint64_t record_number(std::uint64_t n) const {
        return n * shard.shards + shard.shard - 1;
    }

private:
    std::string shard_text() const;
};

struct BatchRequest {
    const Program* program = nullptr;     ///< whose commands have the keys of records; not null
    Request defaults;                     ///< given by flags, for records that do not specify them
    std::vector<FlagValue> model_flags;   ///< the same for records of mode model: its own flags
    std::vector<std::string> flag_files;  ///< files that flags were read from
    std::vector<BatchInput> inputs;
    Shard shard;
    std::size_t jobs = 1;
    std::optional<std::uint64_t> max_failures;  ///< the batch ends after this many failures
    std::string output = "-";                   ///< with `parts`, their index
    std::optional<PartLayout> parts;            ///< of --out-dir
    bool resume = false;        ///< continue after the answers that the output holds
    bool retry_failed = false;  ///< failed records are answered again, in their positions
    bool dry_run = false;       ///< costs instead of answers
};

/// Answers every record; true if none failed. The bytes do not depend on the number of jobs. Memory
/// holds only the records in progress and their answers. A signal ends the program after the
/// records in progress. Errors: kind io for request files and the output; kind input for an output
/// that does not match the requests.
bool run_batch(BatchRequest request);

/// An array of an answer whose elements are in a binary file.
struct PackedArray {
    std::string name;  ///< "context_vectors"
    io::ArrayBytes type;
    std::uint64_t saturated = 0;  ///< numbers beyond the largest one of the stored type
    std::string store = {};       ///< the meaning of integers, or empty
    std::string entry = {};       ///< its name in the file
    std::optional<std::uint64_t> offset = {};  ///< in a file of many: of the first element
};

struct PackedArrays {
    std::vector<PackedArray> arrays;
    io::TextBuffer bytes;  ///< of all arrays in turn, row-major; or of a file of one record
};

/// What became of a record.
struct RecordOutcome {
    /// Including its line break. With `packed`, the answer's head without its closing brace.
    io::TextBuffer line;
    std::string problem = {};                 ///< "where: what" of a failed record, otherwise empty
    std::exception_ptr end = {};              ///< the error that ends the batch, not an answer
    std::optional<PackedArrays> packed = {};  ///< of an answer that is not all text

    std::size_t size() const { return line.size() + (packed ? packed->bytes.size() : 0); }
};

/// The arrays in the type that the request stores. Streams are consumed. Errors: kind usage for
/// arrays that one file cannot hold.
PackedArrays pack(const Request& request, std::vector<NamedArray> arrays, ThreadPool& workers);

/// A line of the index of --out-dir: an answer's head, and the location of its arrays.
struct IndexLine {
    std::string head;          ///< of the answer, without its closing brace
    std::uint64_t record = 0;  ///< its number among all records, from 0
    std::string file;          ///< the part's name in the folder
    std::vector<PackedArray> arrays;
};

/// The first member after an answer's head.
inline constexpr std::string_view record_key = "record";

/// Empty if the document, whose text is `source`'s, is not such a line.
std::optional<IndexLine> read_index_line(const io::JsonDocument& document,
                                         const io::Source& source);

/// What is wrong with an answer of the index, to the shard's n-th record from 0; or empty: it is
/// that record's, and the part holds its arrays.
std::string problem_of(const PartLayout& layout, const IndexLine& line, std::uint64_t n);

/// Whether the part holds these arrays. Errors: kind io.
bool holds(const PartLayout& layout, const IndexLine& line, const PackedArrays& packed);

/// One more than the last part that the index names.
std::uint64_t parts_in_index(const PartLayout& layout);

/// Makes the folder if it does not exist. A folder without an index must have no parts of an
/// earlier run, which would be replaced. Errors: kind io.
void make_folder(const PartLayout& layout);

/// Removes the parts from number `first` on, and incomplete ones; no other files. They are left
/// over from a run that was killed.
void remove_parts(const PartLayout& layout, std::uint64_t first);

/// Writes the answers of --out-dir: a part when it is complete, and then its lines of the index. A
/// part is complete with `records_per_file` records, or when they take `part_bytes`: memory holds
/// it until then, and one answer.
class Parts {
public:
    static constexpr std::size_t part_bytes = std::size_t{1} << 26;

    /// `part` is the first one to write, `record` the shard's first record.
    Parts(const PartLayout& layout, std::uint64_t part, std::uint64_t record, io::Output& index)
        : layout_(layout), part_(part), record_(record), index_(index) {}

    /// The answer to the next record. Errors: kind io. After an error the object must not be used.
    void add(RecordOutcome outcome);

    /// Writes the last part, which may be shorter. Errors: the same.
    void finish();

private:
    struct Held {
        std::uint64_t record;
        RecordOutcome outcome;
    };

    const PartLayout& layout_;
    std::uint64_t part_, record_;  // the next ones
    io::Output& index_;
    std::size_t bytes_ = 0;
    std::vector<Held> held_;  // of the current part
};

/// The records written so far.
struct BatchCount {
    std::uint64_t records = 0, failed = 0;
    std::string first_problem = {};
    std::uint64_t bytes = 0;  ///< of the lines of an earlier run; the next answer starts here
};

/// Writes the answers of a batch in the order of the records, in whatever order they are completed.
/// Thread-safe.
class BatchResults {
public:
    /// `already` counts the answers that the output holds before the first new one. `parts` takes
    /// the answers instead of the output; null: none.
    BatchResults(io::Output& out, Parts* parts, const BatchCount& already,
                 const BatchRequest& request, Progress& progress, Stop& stop)
        : out_(out), parts_(parts), count_(already), before_(already.records),
          max_failures_(request.max_failures), is_table_(request.defaults.format->lists_elements),
          progress_(progress), stop_(stop) {}

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
    std::string_view lines_of(RecordOutcome& answer);
    void write(std::string_view lines);
    void add_to_parts(RecordOutcome& answer);
    void write_ready();

    io::Output& out_;
    Parts* parts_;
    BatchCount count_;
    std::uint64_t before_;  // records of an earlier run
    std::optional<std::uint64_t> max_failures_;
    bool is_table_;
    std::string header_;  // of the table of all answers
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

/// Records that differ only in their id, meta, seed and arrays. The rest is read, checked and
/// formatted once; a plan is made once per set of shapes.
class Prepared {
public:
    /// Whether a record's answer depends only on its line, not on files or on available memory.
    /// `memory` is what the answer takes, in bytes.
    static bool may_be(const io::InputFile& line, const Request& request, const Plan& plan,
                       double memory);

    /// The records like the one on `line`, whose request is `request`.
    Prepared(const io::InputFile& line, Request request);

    /// Whether the line has the same keys and settings as these records. Its arrays may have other
    /// shapes.
    bool hold(const io::InputFile& line) const;

    /// Adds a plan, and its request's `asked`, for records whose arrays have the shapes of its
    /// operands.
    void add(Plan plan, std::string asked);

    /// The answer to a record like these; `id` is its id if the line has none. Empty if no plan has
    /// its shapes. Errors: the problem of the record, without its location.
    std::optional<RecordOutcome> answer(const io::InputFile& line, const std::string& id,
                                        const Runtime& runtime);

private:
    enum class Part { id, meta, seed, array, setting };

    /// A member of the line's JSON object.
    struct Member {
        std::string key;
        Part part;
        std::string text;  // of a setting, verbatim
    };

    struct Planned {
        Plan plan;
        std::string asked;
        std::vector<std::string> head;  // of an answer, split around its slots()
        std::size_t longest = 0;        // answer, in bytes
    };

    /// What differs in heads: keys and values, in order; a value is empty if records lack the key.
    using Slots = std::array<std::pair<std::string_view, std::string_view>, 5>;
    Slots slots(std::string_view seed, std::string_view draws) const;
    std::string head_of(Planned& planned, std::string_view seed, std::uint64_t draws);

    Request request_;
    std::vector<Member> members_;
    std::vector<Planned> planned_;
    std::size_t oldest_ = 0;  // the plan replaced next, modulo their number
};

/// The text that every result of this record, or its line in an index, starts with; and every error
/// and bare result.
std::string start_of_result(const Record& record, bool is_index);
std::string start_of_bare(const Record& record);

/// An answer is one line of JSON, or arrays in a file of the format `packed`; null: JSON. Errors:
/// kind usage for settings that request another format; `lines`: what the batch writes, null if the
/// request is its own.
void check_answer_format(Request& request, const io::OutputFormat* packed,
                         const io::OutputFormat* lines = nullptr);

/// Answers records one by one; each job has its own instance. Jobs share the processors; a single
/// job may use all of them.
class Answerer {
public:
    Answerer(const BatchRequest& batch, io::LoadedModels& models);

    /// Problems of the record are reported in its answer. Throws BeyondShare.
    RecordOutcome answer(const Record& record);

    /// The start of this record's answer line, up to its arrays; empty for a record that fails.
    std::string beginning(const Record& record);

private:
    using Line = std::optional<io::InputFile>;
    /// The record if its mode is model; else empty.
    Line model_request(const Record& record, const Line& line) const;
    ModelAsked ask_model(const Record& record, io::InputFile file) const;
    RecordOutcome answer_model(const Record& record, io::InputFile file);
    PlannedQuestion plan(const Record& record, Line line);
    /// `alike`: the records like this one, if any.
    RecordOutcome answer_line(const Record& record, const Line& line, Prepared* alike);
    void remember(const io::InputFile& line, Answer&& answered, double memory, Prepared* kind);

    const BatchRequest& batch_;
    const Request& defaults_;
    const io::OutputFormat* packed_;  // of answers to --out-dir; null: lines
    std::size_t threads_;             // the default of records that do not specify it
    ThreadPool workers_;
    io::LoadedModels& models_;
    ModelCache whole_models_;      // of records of mode model
    std::vector<Prepared> alike_;  // the kinds added last
    std::size_t oldest_ = 0;       // the kind replaced next, modulo their number
};

/// An answer of an earlier run.
struct AnswerLine {
    std::string text;  ///< with its line break
    std::size_t number = 0;
    bool is_whole = true;              ///< false: the text lacks its end
    std::string id;                    ///< as JSON
    std::string problem;               ///< of a failed record, else empty
    std::optional<IndexLine> indexed;  ///< of a good answer in an index
};

/// Reads the answers that a file holds. Errors: kind input if it holds anything else.
class AnswerReader {
public:
    /// `is_index`: of --out-dir.
    AnswerReader(const std::string& path, bool is_index);

    /// False at the end, and for zeros, which some file systems leave there.
    bool next(AnswerLine& answer);

    std::uint64_t position() const { return lines_.position(); }

private:
    void read_head(AnswerLine& answer) const;

    std::string path_;
    bool is_index_;
    io::LineReader lines_;
};

/// The last successful answer.
struct LastGood {
    Record record;
    AnswerLine line;  ///< without text if there is none
};

/// Skips the records whose answers the batch's output holds, compared by id. A last line without a
/// line break is ignored if it is the beginning of an answer to the next record. The last
/// successful answer must have the settings that this batch would give it. For a record without an
/// id, the whole line must be the same. Errors: kind input if the file holds anything else.
BatchCount skip_answered(RecordReader& records, const BatchRequest& batch, Answerer& answerer);

/// The successful answers of an earlier run, in the order of the records.
class GoodAnswers {
public:
    explicit GoodAnswers(const BatchRequest& batch);

    /// The line of this record's answer; empty if it failed or is missing. Records must be passed
    /// in order. Errors: kind input for lines that are not answers.
    std::optional<std::string> take(const Record& record);

    /// Errors: kind input if a line remains that belongs to no record, or an id does not identify a
    /// line's record. Also if the last successful answer has other settings than this batch would
    /// give it.
    void check_end(Answerer& answerer);

private:
    void find_next();

    const BatchRequest& batch_;
    AnswerReader answers_;
    AnswerLine line_;  // the next successful answer, or the incomplete last line; no text: the end
    LastGood last_;
    std::size_t records_ = 0;  // passed to `take` so far

    // A failed record whose id could not be read has its line number as its id, which may be
    // another record's id. In this case, a successful answer counts only in its record's position.
    std::unordered_set<std::string> failed_ids_;
    std::vector<std::pair<std::string, std::size_t>> moved_;  // successful ones elsewhere: id, line
};

}  // namespace attn::cli
