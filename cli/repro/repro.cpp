#include "cli/repro/repro.hpp"

#include <utility>

#include "cli/output/output_name.hpp"
#include "cli/question/question.hpp"
#include "core/base/error.hpp"
#include "io/file/output_file.hpp"

namespace attn::cli {
namespace {

/// Only the reference path records the steps that the tolerances are derived from.
constexpr std::string_view recording_kernel = "reference";

void check_name(const LanguageRow& language, const Request& request) {
    const std::string suffix = io::suffix_of_name(request.output);
    const bool fits = suffix == language.suffixes.front() || !must_name_format(request.output);
    if (!fits)
        refuse_name({request.output, location_of(request, "output"),
                     "a program by --to " + std::string(language.name) + " is not of this kind"},
                    {language.suffixes.front()});
}

/// Refuses what selects a part of the answer, and what a program cannot choose.
void check_settings(const Request& request) {
    if (request.settings.token || !request.token_label.empty())
        throw setting_error(request, "token", "a program computes every query; expected no token");
    if (!request.settings.head.empty())
        throw setting_error(request, "head", "a program computes every head; expected no head");
    if (is_from_flag(request, "precision"))
        throw setting_error(request, "precision",
                            "a program has every digit; expected no precision");
    if (request.settings.kernel != "auto" && request.settings.kernel != recording_kernel)
        throw setting_error(request, "kernel",
                            "a fused kernel records no steps; expected auto or reference");
}

/// Before anything is computed: the arrays by query and key, and by query and column.
void check_size(const Plan& plan) {
    const auto count = [](auto... sizes) { return (static_cast<double>(sizes) * ...); };
    const double weights = count(plan.batch, plan.heads, plan.q_len, plan.kv_len),
                 inputs = count(plan.batch, plan.q_len, plan.d_in + plan.d_out),
                 keys = count(plan.batch, plan.kv_heads, plan.kv_len, plan.d_k + plan.d_v);
    const double all = weights + inputs + keys;
    if (all > static_cast<double>(max_program_numbers))
        throw Error(ErrorKind::usage, "attn repro",
                    "the program would hold " + std::to_string(static_cast<std::size_t>(all)) +
                        " numbers or more; expected at most " +
                        std::to_string(max_program_numbers) + ", as of fewer tokens or heads");
}

/// The same with the parameters.
void check_size(const Repro& program) {
    std::size_t all = 0;
    for (const auto* arrays : {&program.operands, &program.expected})
        for (const ProgramArray& array : *arrays) all += array.values.size();
    if (all > max_program_numbers)
        throw Error(ErrorKind::usage, "attn repro",
                    "the program would hold " + std::to_string(all) +
                        " numbers; expected at most " + std::to_string(max_program_numbers) +
                        ", as of smaller widths or fewer tokens");
}

}  // namespace

std::vector<std::string> write_repro(const LanguageRow& language, const Request& flags) {
    check_name(language, flags);
    RequestWithInput asked = open_request(flags);
    ThreadPool workers;
    io::LoadedModels models;
    const Runtime runtime{workers, models};
    Question question = read_question(std::move(asked), runtime);
    check_settings(question.request);
    // They shape what is written, and a program has all arrays of each head.
    question.request.settings.average_heads = false;
    const PlannedQuestion planned =
        plan_question(std::move(question), {.emit = emit_of_program, .kernel = recording_kernel});
    check_size(planned.plan);
    const Answer answered = answer(PlannedQuestion(planned), runtime);
    Repro program = make_program(planned, answered.result);
    program.command = flags.command;
    check_size(program);
    const std::string text = program_text(language, program);
    io::OutputFile out(flags.output);
    out.fill([&](io::Output& to) { to << text; });
    out.commit();
    return answered.question.notes;
}

}  // namespace attn::cli
