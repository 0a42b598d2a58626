// In what a backward pass is not the derivative of its forward pass.
#include "core/check/departures.hpp"

namespace attn {
namespace {

using Backward = BackwardConvention;

/// What other programs have instead of the question's, in words.
struct BackwardRow {
    const char* words;
    void (*change)(Backward& how);
};

void add_back(Alternatives& to, bool can_apply, const char* asked,
              std::initializer_list<BackwardRow> rows) {
    if (!to.problem.plan.config.backward || !can_apply) return;
    to.asked(asked);
    for (const BackwardRow& row : rows)
        to.add(row.words, 2, [change = row.change](Conventions& c) { change(c.backward); });
}

void losses_back(Alternatives& to) {
    const std::optional<Loss> asked = to.problem.asked.backward.loss;
    add_back(to, asked.has_value(), asked ? name_of(loss_names, *asked).data() : "",
             {{"sum", [](Backward& how) { how.loss = Loss::sum; }},
              {"mean", [](Backward& how) { how.loss = Loss::mean; }}});
}

void factors_back(Alternatives& to) {
    const Plan& plan = to.problem.plan;
    if (!plan.config.backward) return;
    const std::optional<Loss> asked = to.problem.asked.backward.loss;
    const auto count = static_cast<double>(plan.numbers<std::uint64_t>("context_vectors")),
               batch = static_cast<double>(plan.batch), rows = static_cast<double>(plan.rows);
    const bool is_mean = asked == Loss::mean || asked == Loss::mse;
    to.asked("1");
    for (const auto& [words, factor, applies] : {
             std::tuple("the number of elements: not divided by it", count, is_mean),
             {"1/2: without the 2 of the derivative of a square", 0.5, asked == Loss::mse},
             {"half the number of elements: neither divided by it nor times 2", count / 2,
              asked == Loss::mse},
             {"the number of elements of an entry: divided by the batch alone", count / batch,
              is_mean},
             {"the number of columns: divided by the tokens alone", count / batch / rows, is_mean},
             {"1 / number of elements", 1 / count, !is_mean},
             {"1/batch", 1 / batch, true},
             {"-1", -1.0, true},
         })
        if (applies) to.set(words, &Conventions::backward, &Backward::factor, factor, 2);
}

void scales_back(Alternatives& to) {
    add_back(to, to.problem.asked.scale != 1 && !to.problem.plan.config.rule, "once",
             {{"left out of gradients of queries", [](Backward& how) { how.query_scale = 0; }},
              {"left out of gradients of keys", [](Backward& how) { how.key_scale = 0; }},
              {"left out", [](Backward& how) { how.query_scale = how.key_scale = 0; }},
              {"twice in gradients of queries", [](Backward& how) { how.query_scale = 2; }},
              {"twice in gradients of keys", [](Backward& how) { how.key_scale = 2; }},
              {"twice", [](Backward& how) { how.query_scale = how.key_scale = 2; }}});
}

void groups_back(Alternatives& to) {
    add_back(to, to.problem.plan.heads != to.problem.plan.kv_heads, "the sum of the group",
             {{"the first of the group", [](Backward& how) { how.groups = GroupSum::first; }},
              {"the last of the group", [](Backward& how) { how.groups = GroupSum::last; }},
              {"the mean of the group", [](Backward& how) { how.groups = GroupSum::mean; }}});
}

void dropouts_back(Alternatives& to) {
    add_back(
        to, to.problem.asked.drops, "as forward",
        {{"1/(1-p) twice in gradients of weights", [](Backward& how) { how.dropout_factors = 2; }},
         {"1/(1-p) left out of gradients of weights",
          [](Backward& how) { how.dropout_factors = 0; }},
         {"left out of gradients of weights", [](Backward& how) { how.drops = false; }},
         {"left out of gradients of values", [](Backward& how) { how.drops_values = false; }},
         {"left out", [](Backward& how) { how.drops = how.drops_values = false; }}});
}

void row_terms_back(Alternatives& to) {
    add_back(to, !to.problem.plan.config.rule, "less the sum of weights times gradients",
             {{"without the sum of weights times gradients",
               [](Backward& how) { how.row_term = RowTerm::none; }},
              {"less the sum of weights after dropout times gradients",
               [](Backward& how) { how.row_term = RowTerm::dropped; }}});
}

template <Forgotten what, bool keeps_sum>
void forget(Backward& how) {
    how.forgets = what;
    how.keeps_sum = keeps_sum;
}

void weights_back(Alternatives& to) {
    const Conventions& asked = to.problem.asked;
    const bool is_softmax = !to.problem.plan.config.rule;
    add_back(
        to, is_softmax && asked.band.causal, "as forward",
        {{"weights without the causal mask, by the forward sum", forget<Forgotten::causal, true>},
         {"weights without the causal mask", forget<Forgotten::causal, false>}});
    add_back(to, is_softmax && excludes_keys(to.problem, asked), "as forward",
             {{"weights without masks, by the forward sum", forget<Forgotten::masks, true>},
              {"weights without masks", forget<Forgotten::masks, false>}});
    add_back(to, !asked.sink.empty() || asked.softmax_plus > 0, "as forward",
             {{"weights without the sink", forget<Forgotten::sink, false>}});
}

void caps_back(Alternatives& to) {
    add_back(to, to.problem.asked.softcap != 0, "1 - tanh^2(x / c)",
             {{"1", [](Backward& how) { how.cap = CapSlope::none; }},
              {"1 - tanh^2(capped / c)", [](Backward& how) { how.cap = CapSlope::of_capped; }},
              {"1 - capped^2", [](Backward& how) { how.cap = CapSlope::unscaled; }}});
}

void turns_back(Alternatives& to) {
    add_back(to, to.problem.asked.rope.pairs.has_value(), "rotated backwards",
             {{"not rotated", [](Backward& how) { how.query_turns = how.key_turns = 0; }},
              {"rotated forwards", [](Backward& how) { how.query_turns = how.key_turns = 1; }},
              {"of queries not rotated", [](Backward& how) { how.query_turns = 0; }},
              {"of keys not rotated", [](Backward& how) { how.key_turns = 0; }},
              {"of queries rotated forwards", [](Backward& how) { how.query_turns = 1; }},
              {"of keys rotated forwards", [](Backward& how) { how.key_turns = 1; }}});
}

void parameters_back(Alternatives& to) {
    add_back(to, to.problem.plan.has_parameters(), "as stored, summed over tokens",
             {{"weights transposed", [](Backward& how) { how.transposes_weights = true; }},
              {"biases averaged over tokens", [](Backward& how) { how.averages_biases = true; }}});
}

constexpr ConventionRow conventions_of_backward[] = {
    {"loss", "loss ", losses_back,
     [](const Problem&, const Conventions& c) {
         return "--loss " + std::string(name_of(loss_names, *c.backward.loss));
     }},
    {"grad_factor", "gradients times ", factors_back, no_flag, nullptr,
     [](Conventions& c) -> double& { return c.backward.factor; }},
    {"grad_scale", "scale in gradients: ", scales_back},
    {"grad_groups", "gradients of shared key heads: ", groups_back},
    {"grad_dropout", "dropout backward: ", dropouts_back},
    {"grad_softmax", "softmax backward: ", row_terms_back},
    {"grad_weights", "recomputed backward: ", weights_back},
    {"grad_softcap", "soft cap's derivative ", caps_back},
    {"grad_rope", "gradients ", turns_back},
    {"grad_parameters", "gradients of parameters: ", parameters_back},
};

}  // namespace

const std::span<const ConventionRow> rows_of_backward = conventions_of_backward;

}  // namespace attn
