// A request's question: all that it works on, and the plan of its answer.
#pragma once

#include <optional>

#include "cli/request/request.hpp"
#include "core/layer/operands.hpp"
#include "core/plan/plan.hpp"
#include "io/model/loaded_models.hpp"
#include "io/read/input_file.hpp"

namespace attn::cli {

/// What questions share.
struct Session {
    ThreadPool& pool;
    io::LoadedModels& models;
};

/// What a command makes of a request.
struct Purpose {
    void (*check)(const Request&) = nullptr;  ///< refuses settings before an array is read
    void (*settle)(Request&) = nullptr;  ///< settles what is the command's own, once all is read
    bool walks = false;                  ///< every step of one query is wanted
};

struct Question {
    Operands operands;
    Plan plan;
};

/// Reads INPUT, or the file in its stead, and every array, and plans the answer. The request's
/// settings are then the plan's, with every default filled in. Errors: kinds usage, input, shape,
/// unsupported and io.
Question read_question(Request& request, const Session& session, const Purpose& purpose,
                       std::optional<io::InputFile> input = {});

}  // namespace attn::cli
