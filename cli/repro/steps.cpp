// The steps of attention, in order.
#include "cli/repro/language.hpp"

namespace attn::cli {
namespace {

struct Step {
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
    {[](const Repro& p) { return p.input_norm.has_value(); }, &Language::norm},
    {always, &Language::project},
    {[](const Repro& p) { return p.query_norm || p.key_norm; }, &Language::norm_heads},
    {[](const Repro& p) { return p.plan.qk_norm; }, &Language::qk_norm},
    {[](const Repro& p) { return p.plan.rope.dims != 0; }, &Language::rotate},
    {[](const Repro& p) { return p.plan.past_len != 0; }, &Language::append_cache},

    {is_softmax, &Language::product, true},
    {[](const Repro& p) { return is_softmax(p) && p.plan.scale != 1; }, &Language::scale, true},
    {[](const Repro& p) { return p.plan.softcap != 0; }, &Language::softcap, true},
    {[](const Repro& p) { return p.plan.alibi; }, &Language::alibi, true},
    {[](const Repro& p) { return !p.additive_masks.empty(); }, &Language::add_masks, true},
    {[](const Repro& p) { return is_softmax(p) && p.has_rules(); }, &Language::apply_rules, true},
    {is_softmax, &Language::softmax, true},
    {[](const Repro& p) { return is_softmax(p) && p.renormalizes(); }, &Language::renormalize,
     true},
    {[](const Repro& p) { return p.has("dropout_kept"); }, &Language::drop, true},
    {is_softmax, &Language::multiply_values, true},

    {[](const Repro& p) { return p.is_linear(); }, &Language::recurrence},
    {[](const Repro& p) { return p.is_linear(); }, &Language::recurrence_weights},

    {[](const Repro& p) { return p.merges_heads(); }, &Language::merge_heads},
    {[](const Repro& p) { return p.has("W_out"); }, &Language::project_out},
};

}  // namespace

std::string program_text(const LanguageRow& row, const Repro& program) {
    const std::unique_ptr<Language> language = row.make(program);
    language->begin();
    for (const ProgramArray& operand : program.operands) language->operand(operand);
    language->begin_steps();
    bool attended = false;
    for (const Step& step : steps) {
        if (!step.applies(program)) continue;
        if (!step.is_in_operator || !language->has_operator()) {
            (*language.*step.write)();
        } else if (!attended) {
            language->attend();
            attended = true;
        }
    }
    for (std::size_t i = 0; i < program.expected.size(); ++i)
        if (language->has_result(program.expected[i].name))
            language->check(program.expected[i], program.tolerances[i]);
    language->end();
    return language->take();
}

}  // namespace attn::cli
