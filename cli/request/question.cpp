// Reading and planning; see question.hpp.
#include "cli/request/question.hpp"

#include <utility>

#include "cli/request/inputs.hpp"
#include "cli/request/output.hpp"

namespace attn::cli {

Question read_question(Request& request, const Session& session, const Purpose& purpose,
                       std::optional<io::Source> document) {
    Operands operands =
        read_operands(request, session.pool, session.models, purpose.check, std::move(document));
    if (purpose.settle != nullptr) purpose.settle(request);
    const Ask ask{takes_streams(request), purpose.walks};
    Plan plan = make_plan(std::move(request.settings), shapes_of(operands), ask);
    request.settings = plan.config;
    // What is drawn beside it is not part of the question.
    if (!request.written.empty()) request.settings.emit = {request.written};
    return {std::move(operands), std::move(plan)};
}

}  // namespace attn::cli
