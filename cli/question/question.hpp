// From an open request to its answer: operands, plan and result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/question/input.hpp"
#include "cli/question/rows_in_file.hpp"
#include "cli/request/request.hpp"
#include "core/layer/cost.hpp"
#include "core/layer/layer.hpp"
#include "core/layer/operands.hpp"
#include "core/plan/plan.hpp"
#include "io/model/loaded_models.hpp"

namespace attn::cli {

/// The resources that questions share.
struct Runtime {
    ThreadPool& pool;
    io::LoadedModels& models;
};

/// Everything that an answer depends on.
struct Question {
    Request request;    ///< with the settings, labels and locations that reading determines
    Operands operands;  ///< inputs that are drawn have no elements before with_cost()
    std::vector<std::string> notes;       ///< one line each, see notes.hpp
    bool may_be_nonfinite = false;        ///< inputs or context, where a mask may hide rows
    double text_bytes = 0;                ///< bytes of text that stay in memory
    double text_bytes_while_reading = 0;  ///< bytes of text that are freed once read
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

}  // namespace attn::cli
