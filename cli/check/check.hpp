// `attn check`: whether other programs' arrays are right, and which conventions explain wrong ones.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/question/question.hpp"
#include "cli/request/request.hpp"
#include "core/base/function_ref.hpp"
#include "core/base/number_type.hpp"
#include "core/base/thread_pool.hpp"
#include "core/check/comparison.hpp"
#include "core/check/judge.hpp"
#include "core/check/their_array.hpp"
#include "core/plan/plan.hpp"
#include "io/file/output.hpp"
#include "io/read/csv.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {

// The arrays of another program that are to be checked, by attn's names.

/// `--names Y=context_vectors`; `theirs` is empty for an array that has no name.
struct NamePair {
    std::string theirs;
    ArrayId ours;
};

/// "theirs=ours,..." or "ours" alone. Errors: kind usage for names that attn does not have.
std::vector<NamePair> read_names(const std::string& list);

struct TheirFile {
    std::string path;
    std::vector<GivenArray> arrays;         ///< at least one, in the order of computation
    std::vector<std::string> not_compared;  ///< their names
    /// Of one array without a name, whose shape is not that of context vectors: the other array of
    /// a result that it may be.
    std::optional<ArrayId> fits = {};
};

struct TheirOptions {
    std::vector<NamePair> names;
    std::optional<NumberType> type;   ///< that the program computed in; empty: by its numbers
    std::optional<StoredType> words;  ///< that its numbers are; empty: as the file says
    bool as_words = false;            ///< also where the file says nothing: numbers of its type
    io::CsvStyle csv;
};

/// Reads a program's arrays that the question has. Errors: kind usage if there is none, or two
/// for one of attn's, and for names that the file or the question does not have; those of
/// ResultView.
TheirFile read_theirs(const io::InputFile& file, const TheirOptions& options, const Plan& plan,
                      ThreadPool& pool);

/// What the text of an array tells about the numbers that were printed.
struct TextNumbers {
    /// Empty: enough digits for the numbers to be exact in their type.
    std::optional<PrintedDigits> printed;
    /// That the digits suffice for, float32 or float64.
    NumberType type = NumberType::float64;
    bool are_padded = false;  ///< with zeros at the end, as shortest decimals are not
};

/// Of JSON or CSV. Every word that begins like a number counts as one.
TextNumbers text_numbers(std::string_view text);

struct CheckRequest {
    Request flags;                     ///< of the question
    std::vector<std::string> against;  ///< files; FILE:NAME is one array, - standard input
    std::string names;                 ///< `--names`, or empty
    std::optional<NumberType> type;    ///< that the other programs computed in
    std::optional<StoredType> words;   ///< that their numbers were rounded to
    CheckLimits limits;
    std::string junit;                      ///< the file of `--junit`, or empty
    std::optional<io::InputFile> question;  ///< that is open: it may be a pipe
    bool json = false, search = false, exact = false;
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
    bool tried_draws = false;    ///< other ones, after the conventions
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
    bool fits_type(const ProgramJudgement& judgement, const std::vector<GivenArray>& given,
                   NumberType type);
    bool has_other_cause(const ProgramJudgement& judgement, const std::vector<GivenArray>& given);
    void search(ProgramJudgement& judgement, const std::vector<GivenArray>& given,
                std::size_t max_changes);
    bool search_layouts(ProgramJudgement& judgement, const std::vector<GivenArray>& given,
                        const std::vector<TheirArray>& theirs,
                        const std::vector<std::size_t>& indices, std::size_t max_changes);

    const CheckRequest& asked_;
    ThreadPool& pool_;
    Request request_;
    std::vector<std::string> notes_;
    TheirOptions theirs_;
    Problem problem_;
    Operands operands_;  ///< for the search, which draws others
    Judge judge_;
};

/// The fewest other seeds, initialisers, orders of drawing and biases that reproduce every array;
/// tries none if the question draws nothing or is large. `operands` are the question's.
void search_draws(ProgramJudgement& judgement, const Request& asked, const Problem& problem,
                  const Operands& operands, const std::vector<TheirArray>& arrays,
                  ThreadPool& pool);

/// Verdicts as JUnit's XML: a suite with a test case for each program or record.
class JUnitReport {
public:
    explicit JUnitReport(std::string suite) : suite_(std::move(suite)) {}

    /// A test case that took the time since the last one; `id` is JSON. `kind` is "failure" or
    /// "error", and `problem` its line; empty: it is right.
    void add(const std::string& id, std::string_view kind, const std::string& problem);
    void add(const ProgramJudgement& program);

    std::string text() const;

private:
    std::string suite_, cases_;
    std::size_t tests_ = 0, failures_ = 0, errors_ = 0;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_ = begin_;
};

/// Writes the report that `write(Output&)` writes to the request's output, and then, if there is a
/// file for it, JUnit's. Errors: kind usage if both are one file; kind io.
void write_verdicts(const CheckRequest& request, FunctionRef<void(io::Output&)> write,
                    const JUnitReport& junit);

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

// The report of `attn check`, for people and for programs.

/// The programs as text, best first, in lines of at most `columns` where the table allows it.
std::string check_text(const std::vector<ProgramJudgement>& ranked, std::size_t columns);

/// What is wrong with a program, in one line: "wrong: first departs at ...".
std::string line_of_verdict(const ProgramJudgement& program);

/// "wrong only in head 1, rows 8-9: 16 of 160 elements, all 0"; of an array that has `wrong`.
std::string wrong_text(const ArrayJudgement& array);

/// The same for programs.
nlohmann::ordered_json wrong_json(const WrongElements& wrong);

/// A number of the array with some digits, or NaN, Infinity or -Infinity; and as JSON with all.
std::string brief_number(double value, int digits = 3);
nlohmann::ordered_json element_json(double value);

/// "pairs of changes: 1200 of 5000".
std::string search_progress_text(std::size_t changes, std::size_t done, std::size_t of);

/// One line of JSON, attn.check/1. Several programs are its `candidates`.
std::string check_json(const std::vector<ProgramJudgement>& ranked);

}  // namespace attn::cli
