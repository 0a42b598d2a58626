#include "cli/commands.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/output.hpp"
#include "cli/question/question.hpp"
#include "cli/request/request_builder.hpp"

namespace attn::cli {

int run_mode(const Args& args) {
    const Request flags = make_request(args);
    const bool is_dry = flags.dry_run;
    require_input(flags, "attn " + std::string(args.command->name));
    RequestWithInput asked = open_request(flags);
    std::optional<std::vector<std::string>> computed = plan_output(asked.request);
    const PlanOptions options{.stream = streams_arrays(asked.request), .emit = std::move(computed)};
    ThreadPool pool;
    io::LoadedModels models;
    const Runtime runtime{pool, models};
    PlannedQuestion planned = plan_question(read_question(std::move(asked), runtime), options);
    if (is_dry) {
        const Request& request = planned.question.request;
        write_cost(request, cost_line(request, planned.plan, planned.cost));
        show_notes(planned.question.notes);
        return 0;
    }
    show_notes(check_output_size(planned.question.request, planned.plan, planned.cost));
    Answer answered = answer(std::move(planned), runtime);
    const std::vector<std::string> notes = std::move(answered.question.notes);
    const std::vector<std::string> on_output = write_outputs(std::move(answered), pool);
    show_notes(notes);
    show_notes(on_output);
    return 0;
}

}  // namespace attn::cli
