// The steps of attention, in order.
#include "cli/repro/language.hpp"

namespace attn::cli {
namespace {

struct Step {
    std::string_view name;  ///< in templates
    bool (*applies)(const Repro&);
    void (Language::*write)();
    bool is_in_operator = false;  ///< a part of Language::attend
};

bool always(const Repro&) {
    return true;
}

bool is_softmax(const Repro& p) {
    return !p.is_linear();
}

constexpr Step steps[] = {
    {"norm", [](const Repro& p) { return p.input_norm.has_value(); }, &Language::norm},
    {"project", always, &Language::project},
    {"norm_heads", [](const Repro& p) { return p.query_norm || p.key_norm; },
     &Language::norm_heads},
    {"qk_norm", [](const Repro& p) { return p.plan.qk_norm; }, &Language::qk_norm},
    {"rotate", [](const Repro& p) { return p.plan.rope.dims != 0; }, &Language::rotate},
    {"append_cache", [](const Repro& p) { return p.plan.past_len != 0; }, &Language::append_cache},

    {"product", is_softmax, &Language::product, true},
    {"scale", [](const Repro& p) { return is_softmax(p) && p.plan.scale != 1; }, &Language::scale,
     true},
    {"softcap", [](const Repro& p) { return p.plan.softcap != 0; }, &Language::softcap, true},
    {"alibi", [](const Repro& p) { return p.plan.alibi; }, &Language::alibi, true},
    {"add_masks", [](const Repro& p) { return !p.additive_masks.empty(); }, &Language::add_masks,
     true},
    {"apply_rules", [](const Repro& p) { return is_softmax(p) && p.has_rules(); },
     &Language::apply_rules, true},
    {"softmax", is_softmax, &Language::softmax, true},
    {"renormalize", [](const Repro& p) { return is_softmax(p) && p.renormalizes(); },
     &Language::renormalize, true},
    {"drop", [](const Repro& p) { return p.has("dropout_kept"); }, &Language::drop, true},
    {"multiply_values", is_softmax, &Language::multiply_values, true},

    {"recurrence", [](const Repro& p) { return p.is_linear(); }, &Language::recurrence},
    {"recurrence_weights", [](const Repro& p) { return p.is_linear(); },
     &Language::recurrence_weights},

    {"merge_heads", [](const Repro& p) { return p.merges_heads(); }, &Language::merge_heads},
    {"project_out", [](const Repro& p) { return p.has("W_out"); }, &Language::project_out},
};

}  // namespace

std::map<std::string_view, bool> step_conditions(const Repro& program) {
    std::map<std::string_view, bool> all;
    for (const Step& step : steps) all[step.name] = step.applies(program);
    return all;
}

std::string written_by(Language& language, const Repro& program) {
    language.begin();
    for (const ProgramArray& operand : program.operands) language.operand(operand);
    language.begin_steps();
    bool attended = false;
    for (const Step& step : steps) {
        if (!step.applies(program)) continue;
        if (!step.is_in_operator || !language.has_operator()) {
            (language.*step.write)();
        } else if (!attended) {
            language.attend();
            attended = true;
        }
    }
    for (std::size_t i = 0; i < program.expected.size(); ++i)
        if (language.has_result(program.expected[i].name))
            language.check(program.expected[i], program.tolerances[i]);
    language.end();
    return language.take();
}

}  // namespace attn::cli
