// The answer to one record of a batch, or its error, as one line.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/batch/outcome.hpp"
#include "cli/batch/prepared.hpp"
#include "cli/batch/records.hpp"
#include "cli/model/model.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "io/model/loaded_models.hpp"
#include "io/text/text_buffer.hpp"

namespace attn::cli {

/// The text that every result of this record, or its line in an index, starts with; and every error
/// and bare result.
std::string start_of_result(const Record& record, bool is_index);
std::string start_of_bare(const Record& record);

/// An answer is one line of JSON, or arrays in a file of the format `packed`; null: JSON. Errors:
/// kind usage for settings that request another format.
void check_answer_format(const Request& request, const io::OutputFormat* packed);

/// Answers records one by one; each job has its own instance.
class Answerer {
public:
    /// `threads` is the default of records that do not specify it; `program` has the keys of
    /// records of mode model. `folder` is that of --out-dir, or empty: answers are then lines.
    Answerer(const Request& defaults, const Program& program, bool dry_run, std::size_t threads,
             io::LoadedModels& models, std::string folder = {})
        : defaults_(defaults), program_(program), dry_run_(dry_run), threads_(threads),
          folder_(std::move(folder)), workers_(threads), models_(models) {}

    /// Problems of the record are reported in its answer. Throws BeyondShare.
    RecordOutcome answer(const Record& record);

    /// The start of this record's answer line, up to its arrays; empty for a record that fails.
    std::string beginning(const Record& record);

    /// Whether an answer is the one that this line, with its line break, has or refers to. Errors:
    /// those of load_answer().
    bool is_answer(const RecordOutcome& outcome, const std::string& line) const;

private:
    using Line = std::optional<io::InputFile>;
    /// The record if its mode is model; else empty.
    Line model_request(const Record& record, const Line& line) const;
    ModelAsked ask_model(const Record& record, io::InputFile file) const;
    ModelFiles& files_of(const ModelAsked& asked);
    const io::OutputFormat* packed_format() const;
    RecordOutcome known_answer(const std::string& line) const;
    RecordOutcome answer_model(const Record& record, io::InputFile file);
    RequestWithInput open(const Record& record, Line line) const;
    PlannedQuestion plan(const Record& record, Line line);
    std::optional<RecordOutcome> answer_as_before(const Record& record, const io::InputFile& line,
                                                  Prepared& alike);
    /// `alike`: the records like this one, if any.
    RecordOutcome answer_line(const Record& record, const Line& line, Prepared* alike);
    void remember(const io::InputFile& line, Answer&& answered, double memory, Prepared* kind);
    Prepared* alike_to(const io::InputFile& line);

    const Request& defaults_;
    const Program& program_;
    bool dry_run_;
    std::size_t threads_;
    std::string folder_;
    ThreadPool workers_;
    io::LoadedModels& models_;
    ModelCache whole_models_;      // of records of mode model
    std::vector<Prepared> alike_;  // the kinds added last
    std::size_t oldest_ = 0;       // the kind replaced next, modulo their number
};

}  // namespace attn::cli
