// The settings of scores: their ranges, defaults, and what they require.
#include <cmath>
#include <limits>

#include "core/plan/resolve.hpp"

namespace attn {
namespace {

/// Numbers in settings follow the rule for numbers in arrays.
void check_range(const Settings& s) {
    const auto check = [&](std::string_view name, double value) {
        if (overflows(value, s.dtype)) refuse(name, overflow_text(s.dtype));
    };
    check("scale", s.scale.value_or(1));
    for (const ScoreStep& step : score_steps())
        if (step.must_fit_dtype != nullptr) check(step.key, step.must_fit_dtype(s));
    for (double slope : s.alibi_slopes) check("alibi_slopes", slope);
    for (double scale : s.head_scales) check("scale", scale);
    for (double logit : s.sink) check("sink", logit);
    constexpr double clears = -std::numeric_limits<double>::infinity();  // a factor of 0
    for (double log_decay : s.decay)
        if (log_decay != clears || s.decay_form == DecayForm::plain) check("decay", log_decay);
    for (std::size_t i = 0; s.bonus != nullptr && i < s.bonus->size(); ++i)
        check("bonus", s.bonus->data()[i]);
    for (double rate : s.beta) check("beta", rate);
}

void resolve_rotation(Settings& s, const Plan& plan) {
    if (!s.rope) {
        if (s.rope_dims) refuse("rope_dims", "requires --rope half|interleaved");
        if (s.rope_scaling != nullptr) refuse("rope_scaling", "requires --rope half|interleaved");
        if (s.rope_base) refuse("rope_base", "requires --rope half|interleaved");
        return;
    }
    const RopeScaling none, &scaling = s.rope_scaling == nullptr ? none : *s.rope_scaling;
    const auto take = [&](auto& setting, auto value, std::string_view key, std::string_view name) {
        follow(s, setting, value);
        if (*setting != value)
            refuse(key, "differs from the ", name, " of --rope-scaling; expected one of them");
    };
    if (s.cu_seqlens != nullptr && (scaling.is("dynamic") || scaling.is("longrope")))
        refuse("rope_scaling", scaling.type->name,
               " angles depend on the length of the sequence; expected one call for each, without "
               "--cu-seqlens");
    if (const double theta = scaling.number("rope_theta", 0); theta != 0)
        take(s.rope_base, theta, "rope_base", "rope_theta");
    follow(s, s.rope_base, default_rope_base);
    if (plan.d_k == 1)
        refuse("rope", "a head has 1 dimension, and pairs rotate; expected wider heads");
    const double part = scaling.number("partial_rotary_factor", 1);
    if (part > 0 && part < 1 && !scaling.is("proportional"))
        take(s.rope_dims, static_cast<std::uint64_t>(static_cast<double>(plan.d_k) * part),
             "rope_dims", "partial_rotary_factor");
    if (!s.rope_dims && plan.d_k % 2 != 0)
        refuse("rope", "a head has ", plan.d_k,
               " dimensions; expected an even number, or --rope-dims N");
    follow(s, s.rope_dims, plan.d_k);
    if (*s.rope_dims == 0 || *s.rope_dims % 2 != 0 || *s.rope_dims > plan.d_k)
        refuse("rope_dims", *s.rope_dims, " of ", plan.d_k,
               " dimensions a head; expected an even number of at most as many");
    const std::string problem = s.rope_scaling == nullptr ? "" : rope_settings(s, plan).problem();
    if (!problem.empty()) refuse("rope_scaling", problem);
}

}  // namespace

RopeSettings rope_settings(const Settings& s, const Plan& plan) {
    RopeSettings rope{*s.rope, *s.rope_base, static_cast<std::size_t>(*s.rope_dims)};
    if (s.rope_scaling == nullptr) return rope;
    RopeScaling scaling = *s.rope_scaling;
    scaling.tokens = static_cast<double>(std::max(plan.kv_len, plan.past_len + plan.q_len));
    if (plan.query_positions.ids != nullptr)  // the length that they reach
        scaling.tokens = 1 + std::max(std::ranges::max(*plan.query_positions.ids),
                                      std::ranges::max(*plan.key_positions.ids));
    rope.scaling = std::make_shared<const RopeScaling>(std::move(scaling));
    return rope;
}

void resolve_scores(Settings& s, const Plan& plan) {
    check_range(s);
    for (const auto& [key, type] :
         {std::pair("softmax_dtype", s.softmax_dtype), {"accumulate", s.accumulate}})
        if (type && !is_rounded(s.dtype))
            refuse(key, "requires --dtype bfloat16 or float16; with ", row_of(s.dtype).name,
                   " every step is in that type");
        else if (type && *type != NumberType::float32 && *type != s.dtype)
            refuse(key, "conflicts with --dtype ", row_of(s.dtype).name, "; expected float32 or ",
                   row_of(s.dtype).name);
    follow(s, s.scale, s.init == Init::none ? 1.0 : 1.0 / std::sqrt(static_cast<double>(plan.d_k)));
    if (s.window.size() == 1) s.window.push_back(-1);
    const std::size_t slopes = s.alibi_slopes.size();
    if (!s.alibi && (slopes != 0 || s.slope_formula)) refuse("alibi_slopes", "requires --alibi");
    if (!s.alibi && s.alibi_distance) refuse("alibi_distance", "requires --alibi");
    if (slopes != 0 && slopes != plan.heads)
        refuse("alibi_slopes", slopes, " slopes; expected ", plan.heads, ", one per head");
    if (s.alibi && slopes == 0) follow(s, s.slope_formula, SlopeFormula::published);
    if (s.alibi) follow(s, s.alibi_distance, AlibiDistance::absolute);
    const std::size_t scales = s.head_scales.size(),
                      takes = row_of(s.mode).mechanism == Mechanism::linear ? 1 : plan.heads;
    if (scales != 0 && scales != takes)
        refuse("scale", scales, " scales; expected one",
               takes == 1 ? "" : concat(", or ", takes, ", one per head"));
    if (s.softmax_plus != 0 && !s.sink.empty())
        refuse("softmax_plus", "conflicts with --sink; expected one of them, or --softmax-plus 0");
    if (s.sink.size() > 1 && s.sink.size() != plan.heads)
        refuse("sink", "logits for ", s.sink.size(), " heads; expected ",
               plan.heads == 1 ? "" : "1 or ", plan.heads);
    for (const auto& [key, is_given] :
         {std::pair("average_heads", s.average_heads), {"head", !s.head.empty()}})
        if (is_given && !plan.shown.with_heads)
            refuse(key, "the result has no heads axis; expected more than one head");
    for (std::uint64_t head : s.head)
        if (head >= plan.heads)
            refuse("head", plan.heads == 1 ? "there is one head; expected 0, or --heads N for more"
                                           : concat("there are ", plan.heads,
                                                    " heads; expected 0 to ", plan.heads - 1));
    resolve_rotation(s, plan);
}

}  // namespace attn
