// Reading and planning; see question.hpp.
#include "cli/request/question.hpp"

#include <utility>

#include "cli/request/inputs.hpp"
#include "cli/request/notes.hpp"
#include "cli/request/output.hpp"
#include "core/base/threads.hpp"

namespace attn::cli {

Question read_question(Request& request, const Session& session, const Purpose& purpose,
                       std::optional<io::InputFile> input) {
    Inputs inputs =
        read_operands(request, session.pool, session.models, purpose.check, std::move(input));
    if (purpose.settle != nullptr) purpose.settle(request);
    // Not the pool's own: what a record is said to need does not depend on how many jobs there are.
    const std::size_t threads = request.threads.value_or(processors());
    const Ask ask{takes_streams(request), purpose.walks, threads, inputs.text,
                  inputs.text_while_reading};
    Plan plan = make_plan(std::move(request.settings), shapes_of(inputs.operands), ask);
    request.settings = plan.config;
    note_packed_heads(request, plan);
    // What is drawn beside it is not part of the question.
    if (!request.written.empty()) request.settings.emit = {request.written};
    return {std::move(inputs.operands), std::move(plan)};
}

}  // namespace attn::cli
