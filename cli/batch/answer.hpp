// One record of a batch: its answer, or what is wrong with it, as a line.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "cli/batch/alike.hpp"
#include "cli/batch/records.hpp"
#include "cli/request/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "io/model/loaded_models.hpp"
#include "io/text/text_buffer.hpp"

namespace attn::cli {

struct RecordOutcome {
    io::TextBuffer line;          ///< with its line break
    std::string problem;          ///< "where: what" of a record that failed, else empty
    std::exception_ptr end = {};  ///< what ends the batch in this record's stead
};

/// How the line of an answer starts: what every answer to this record has, if it succeeds or fails.
std::string start_of_result(const Record& record);
std::string start_of_error(const Record& record);

/// An answer is one line of JSON. Errors: kind usage, for settings that ask for anything else.
void check_answer_format(const Request& request);

/// Answers records one by one; each job has its own.
class Answerer {
public:
    /// `threads` is for each record that does not say one itself.
    Answerer(const Request& defaults, bool dry_run, std::size_t threads, io::LoadedModels& models)
        : defaults_(defaults), dry_run_(dry_run), threads_(threads), workers_(threads),
          models_(models) {}

    /// Whatever is wrong with the record stands in its answer. Throws BeyondShare.
    RecordOutcome answer(const Record& record);

    /// What the line of an answer to this record starts with, up to its arrays; empty for a record
    /// that fails.
    std::string beginning(const Record& record);

private:
    using Line = std::optional<io::InputFile>;
    RequestWithInput open(const Record& record, Line line) const;
    PlannedQuestion plan(const Record& record, Line line);
    std::optional<io::TextBuffer> answer_as_before(const Record& record, const io::InputFile& line);
    io::TextBuffer answer_line(const Record& record, const Line& line);
    void remember(const io::InputFile& line, Answer&& answered, OperandShapes shapes);
    AlikeRecords* alike_to(const io::InputFile& line);

    const Request& defaults_;
    bool dry_run_;
    std::size_t threads_;
    ThreadPool workers_;
    io::LoadedModels& models_;
    std::vector<AlikeRecords> alike_;  // the last few kinds
    std::size_t oldest_ = 0;           // of them
};

}  // namespace attn::cli
