// From an open request to its answer: what is computed on, the plan, the result.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/request/input.hpp"
#include "cli/request/request.hpp"
#include "core/layer/layer.hpp"
#include "core/layer/operands.hpp"
#include "core/plan/plan.hpp"
#include "io/model/loaded_models.hpp"

namespace attn::cli {

/// What questions share.
struct Runtime {
    ThreadPool& pool;
    io::LoadedModels& models;
};

/// All that an answer depends on.
struct Question {
    Request request;  ///< with every choice that reading made: settings, labels, places
    Operands operands;
    std::vector<std::string> notes;       ///< what may not be meant, one line each
    double text_bytes = 0;                ///< of texts that stay in memory
    double text_bytes_while_reading = 0;  ///< of those that are released
};

/// A question whose request has the plan's settings, with every default filled in.
struct PlannedQuestion {
    Question question;
    Plan plan;
};

struct Answer {
    Question question;  ///< without its operands, which are computed with
    Plan plan;
    Result result;
    std::optional<Mask> mask;  ///< where the request has pictures
};

/// Reads every array, and what the model's files fix. Errors: kinds usage, input, shape and io.
Question read_question(RequestWithInput&& asked, const Runtime& runtime);

/// Errors: those of make_plan, at the places of the request.
PlannedQuestion plan_question(Question question, PlanOptions options = {});

/// Errors: those of compute.
Answer answer(PlannedQuestion&& planned, const Runtime& runtime);
Answer answer(Question question, const PlanOptions& options, const Runtime& runtime);

}  // namespace attn::cli
