// `attn check`: whether other programs' arrays are right, and which conventions explain wrong ones.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/check/read_theirs.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/check/judge.hpp"
#include "core/check/search.hpp"

namespace attn::cli {

struct CheckRequest {
    Request flags;                     ///< of the question
    std::vector<std::string> against;  ///< files; FILE:NAME is one array, - standard input
    std::string names;                 ///< `--names`, or empty
    std::optional<Precision> type;     ///< that the other programs computed in
    std::optional<CheckTolerance> tolerance;
    std::optional<io::InputFile> question;  ///< that is open: it may be a pipe
    bool json = false, search = false;
};

/// What was found of one program.
struct ProgramJudgement {
    std::string path;
    std::string id;  ///< of a record, as JSON; or empty
    Verdict verdict = Verdict::right;
    std::vector<ArrayJudgement> arrays;  ///< in the order of computation
    std::vector<GivenArray> given;       ///< likewise, without their values
    std::vector<std::string> not_compared;
    bool is_searched = false;    ///< if it is wrong
    std::vector<Match> matches;  ///< best first; all with as many changes
};

/// A question with its numbers in float64.
class CheckedQuestion {
public:
    /// Errors: those of the question; kind usage for settings that have no meaning here.
    CheckedQuestion(RequestWithInput asked, const CheckRequest& request, const Runtime& runtime);

    /// Errors: those of read_theirs and of memory.
    ProgramJudgement judge(const io::InputFile& theirs);

    const std::vector<std::string>& notes() const { return notes_; }

private:
    CheckedQuestion(PlannedQuestion planned, const CheckRequest& request, const Runtime& runtime);

    void name_type(ProgramJudgement& judgement, const std::vector<GivenArray>& given);
    void search(ProgramJudgement& judgement, const std::vector<GivenArray>& given);
    void search_in_own_axes(ProgramJudgement& judgement, const std::vector<GivenArray>& given,
                            std::vector<TheirArray> theirs, const std::vector<std::size_t>& places,
                            const SearchOptions& options);

    const CheckRequest& asked_;
    ThreadPool& pool_;
    Request request_;
    std::vector<std::string> notes_;
    TheirOptions theirs_;
    Problem problem_;
    Judge judge_;
};

/// Standard input can be read only once. Errors: kind usage.
void check_standard_input(const CheckRequest& request);

/// Judges every file of a question, and writes the report to the request's output. Returns whether
/// all are right. The question's notes go to `notes`. Errors: those above; kinds usage, input and
/// io.
bool check(CheckRequest request, std::vector<std::string>& notes);

/// Whether a file holds one request a line. A single result is a question.
bool holds_requests(const io::InputFile& file);

/// Writes one line for each request of `file`, in order: attn.check/1 with its id, or its error. A
/// request is checked by the result with its id, or, if no result has an id, by that on the same
/// line. Results of no request follow, each with an error. The flags of the request are defaults.
/// Returns whether every result is right. Errors: kind usage for several programs; kind io.
bool check_records(const io::InputFile& file, const CheckRequest& request);

}  // namespace attn::cli
