// From an open request to its answer: input, operands, plan and result.
#pragma once

#include "cli/request/request_builder.hpp"
#include "core/layer/layer.hpp"
#include "core/plan/settings.hpp"
#include "io/model/loaded_models.hpp"

namespace attn::cli {

/// INPUT, or a line of a batch instead.
struct Input {
    io::InputFile file;
    bool is_line = false;
    bool holds_operands = false;  ///< a request's arrays, or a binary file of the operator's
    bool has_own_inputs = false;  ///< a result that also has the inputs it was computed from
    /// The layout of a result whose question is asked again; else null.
    std::shared_ptr<const nlohmann::json> layout = {};
    bool holds_parameters = false;  ///< such a result has those of its layer
    std::vector<std::string> notes = {};

    /// The array of an operand; in a request's document also the object of the weights.
    io::FileArray array(const Request& request, const std::string& key) const;
};

/// A request with the settings of its INPUT. Its arrays are not read yet.
struct RequestWithInput {
    Request request;
    std::optional<Input> input;  ///< empty if it is not read
};

/// Opens INPUT, or uses `line` instead, and adds its settings unless a flag has set them. Errors:
/// kinds usage, input and io.
RequestWithInput open_request(const Request& flags, std::optional<io::InputFile> line = {});

/// Whether a file, rather than an array that its path names, is a result of attn.
bool is_result(const io::InputFile& file);

/// Whether a member of a request is an array of its question.
bool is_array_of(const Request& request, const io::JsonDocument& document,
                 const io::JsonMember& member);

/// Refuses two sources of the same matrix, and settings of an absent source, which would be
/// ignored. Errors: kind usage.
void check_sources(const RequestWithInput& asked);

struct RowsInFile {
    io::StoredArray array;
    io::ArrayRules rules;  ///< for its numbers
};

struct OperandRows {
    /// What stays in its file: every required operand, whose file must allow it, or keys, values
    /// and the tokens they are projected from, where their files allow it.
    enum class Of { required, keys };

    Of of = Of::required;
    std::map<std::string, RowsInFile, std::less<>> files = {};  ///< by the operand's key
};

/// Reads `count` rows of a matrix of the array to `to`; returns the end. Errors: those of
/// io::read_array.
template <class T>
T* read_rows(const RowsInFile& file, std::size_t matrix, std::size_t first, std::size_t count,
             T* to, ThreadPool& pool);

/// The resources that questions share.
struct Runtime {
    ThreadPool& pool;
    io::LoadedModels& models;
};

/// A setting of `config` that was given, with its value as JSON: before planning, and before the
/// model determines others.
struct GivenSetting {
    std::string key, value;
};

/// Everything that an answer depends on.
struct Question {
    Request request;    ///< with the settings, labels and locations that reading determines
    Operands operands;  ///< inputs that are drawn have no elements before with_cost()
    std::vector<std::string> notes;       ///< one line each, see show_notes()
    bool may_be_nonfinite = false;        ///< inputs or context, where a mask may hide rows
    double text_bytes = 0;                ///< bytes of text that stay in memory
    double text_bytes_while_reading = 0;  ///< bytes of text that are freed once read
    std::vector<GivenSetting> given = {};
    io::LoadedModels* models = nullptr;
};

/// A question whose request has the plan's settings, with every default filled in.
struct PlannedQuestion {
    Question question;
    Plan plan;
    Cost cost;  ///< its memory includes the question's text
};

struct Answer {
    Question question;  ///< without its operands, which the computation consumes
    Plan plan;
    Result result;
    std::optional<Mask> mask;  ///< if an output marks masked cells
};

/// Reads all arrays, and the settings that the model's files determine. If `rows` is not null, the
/// rows of the operands stay in their files; see OperandSources. Errors: kinds usage, input, shape
/// and io.
Question read_question(RequestWithInput&& asked, const Runtime& runtime,
                       OperandRows* rows = nullptr);

/// The plan of a question, which gets the plan's settings and a note on them. Errors: those of
/// make_plan, at their locations in the request.
Plan plan_of(Question& question, const PlanOptions& options);

/// Rows of inputs and context that hold NaN or infinity must be keys that no query sees. Errors:
/// kind input, with the entry, token and column of the first other one.
void check_finite_rows(const Request& request, const Plan& plan, const Operands& operands);

/// Errors: those of make_plan and of memory, at their locations in the request.
PlannedQuestion plan_question(Question question, const PlanOptions& options = {});

/// The same, of a plan that plan_of() made; draws the inputs of a text or of --rand, unless this is
/// a dry run. Errors: those of memory.
PlannedQuestion with_cost(Question question, Plan plan);

/// Errors: those of compute.
Answer answer(PlannedQuestion&& planned, const Runtime& runtime);
Answer answer(Question question, const PlanOptions& options, const Runtime& runtime);

/// One label per query and one per key, cached keys included; empty if there are none.
struct AxisLabels {
    std::vector<std::string> queries, keys;
};

/// The numbers of queries and keys to label.
struct Lengths {
    std::size_t queries = 0, keys = 0;  ///< all queries, even if only one is computed
};

/// `tokens` name the queries. `context_tokens` name the keys that are not cached. Without
/// `context_tokens`, `tokens` also name those keys, except in cross attention; in sdpa only if
/// their number equals that of all keys. Cached keys are named "cached 0" and so on. Labels that do
/// not fit are omitted. `mode` is null if it is not known.
AxisLabels axis_labels(const ModeRow* mode, const std::vector<std::string>& tokens,
                       const std::vector<std::string>& context_tokens, const Lengths& lengths);

AxisLabels axis_labels(const Request& request, const Plan& plan);

/// The note on a result that is the input of a next layer although it also has its own inputs.
/// `path` is the result's name, or empty.
std::string note_of_next_layer(const std::string& path);

/// Notes on operands whose shape has another meaning in other programs: heads or batch entries
/// first, tokens or heads first, tokens or batch entries first.
std::vector<std::string> notes_of_shapes(const Request& request, const Plan& plan);

/// "--truncate 128: 384 of 512 tokens are left out"; empty if none are.
std::string note_of_truncation(const std::string& location, std::size_t kept, std::size_t left_out);

/// Adds the same of a request that kept so many tokens, if any are left out.
void note_truncation(const Request& request, std::size_t kept, std::vector<std::string>& notes);

/// Adds a note on something usual that may be unintended, if it is not empty: only for a standard
/// error that is a terminal, unless it is on a guess.
void add_note(std::string note, bool is_guess, std::vector<std::string>& notes);

/// Writes one line per note to standard error.
void show_notes(const std::vector<std::string>& notes);

/// Fails if standard input is a terminal: nobody types a matrix, so the input was forgotten.
/// `missing` states what is missing and how to give it. Errors: kind usage at `command`.
void refuse_keyboard(const std::string& command, const std::string& missing);

/// The same for the input of a question, if the request names none.
void require_input(const Request& request, const std::string& command);

}  // namespace attn::cli
