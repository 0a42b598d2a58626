// In what a backward pass is not the derivative of its forward pass.
#include "core/check/departures.hpp"

namespace attn {
namespace {

constexpr std::size_t with_others = 2;  // changes in a match

bool is_backward(const Alternatives& to) {
    return to.problem.plan.config.backward;
}

/// One member, for the rows below.
template <class Value>
void set_back(Alternatives& to, std::string found, Value BackwardConvention::*member,
         std::type_identity_t<Value> value) {
    to.set(std::move(found), &Conventions::backward, member, value, with_others);
}

void losses_back(Alternatives& to) {
    const std::optional<Loss> asked = to.problem.asked.backward.loss;
    if (!is_backward(to) || !asked) return;
    to.asked(std::string(name_of(loss_names, *asked)));
    for (const auto& [loss, name] : loss_names)
        if (loss != Loss::mse || asked == Loss::mse)
            set_back(to, std::string(name), &BackwardConvention::loss, loss);
}

void factors_back(Alternatives& to) {
    if (!is_backward(to)) return;
    const Plan& plan = to.problem.plan;
    const std::optional<Loss> asked = to.problem.asked.backward.loss;
    const auto count = static_cast<double>(plan.numbers<std::uint64_t>("context_vectors")),
               batch = static_cast<double>(plan.batch), rows = static_cast<double>(plan.rows);
    const bool is_mean = asked == Loss::mean || asked == Loss::mse;
    const auto add = [&](std::string words, double factor) {
        set_back(to, std::move(words), &BackwardConvention::factor, factor);
    };
    to.asked("1");
    if (is_mean) add("number of elements: not divided by it", count);
    if (asked == Loss::mse) {
        add("1/2: without the 2 of the derivative of a square", 0.5);
        add("half the number of elements: neither divided by it nor times 2", count / 2);
    }
    if (is_mean) {
        add("q_len d_out: divided by the batch alone", count / batch);
        add("d_out: divided by the tokens alone", count / batch / rows);
    } else {
        add("1 / number of elements", 1 / count);
    }
    add("1/batch", 1 / batch);
    add("-1", -1);
}

void scales_back(Alternatives& to) {
    if (!is_backward(to) || to.problem.asked.scale == 1 || to.problem.plan.config.rule) return;
    to.asked("once");
    for (const auto& [words, query, key] :
         {std::tuple("left out of gradients by queries", 0, 1),
          {"left out of gradients by keys", 1, 0},
          {"left out of both", 0, 0},
          {"twice in gradients by queries", 2, 1},
          {"twice in gradients by keys", 1, 2},
          {"twice in both", 2, 2}})
        to.add(words, with_others, [query = query, key = key](Conventions& c) {
            c.backward.query_scale = query;
            c.backward.key_scale = key;
        });
}

void groups_back(Alternatives& to) {
    if (!is_backward(to) || to.problem.plan.heads == to.problem.plan.kv_heads) return;
    to.asked("summed");
    set_back(to, "the first head of the group alone", &BackwardConvention::groups, GroupSum::first);
    set_back(to, "the last head of the group alone", &BackwardConvention::groups, GroupSum::last);
    set_back(to, "the mean of the group", &BackwardConvention::groups, GroupSum::mean);
}

void dropouts_back(Alternatives& to) {
    if (!is_backward(to) || !to.problem.asked.drops) return;
    to.asked("as forward");
    set_back(to, "1/(1-p) twice in gradients by weights", &BackwardConvention::dropout_factors, 2);
    set_back(to, "1/(1-p) left out of gradients by weights", &BackwardConvention::dropout_factors, 0);
    set_back(to, "left out of gradients by weights", &BackwardConvention::drops, false);
    set_back(to, "left out of gradients by values", &BackwardConvention::drops_values, false);
    to.add("left out", with_others,
           [](Conventions& c) { c.backward.drops = c.backward.drops_values = false; });
}

void row_terms_back(Alternatives& to) {
    if (!is_backward(to) || to.problem.plan.config.rule) return;
    to.asked("less its mean");
    set_back(to, "sum of weights times gradients not subtracted", &BackwardConvention::row_term,
        RowTerm::none);
    if (to.problem.asked.drops)
        set_back(to, "sum of weights times gradients with the weights after dropout",
            &BackwardConvention::row_term, RowTerm::dropped);
}

void forgotten_back(Alternatives& to) {
    const Conventions& asked = to.problem.asked;
    if (!is_backward(to) || to.problem.plan.config.rule) return;
    to.asked("as forward");
    const auto add = [&](const char* words, Forgotten what) {
        for (const bool keeps_sum : {true, false})
            to.add(concat(words, keeps_sum ? ", divided by the forward sum" : ", with a sum of their own"),
                   with_others, [=](Conventions& c) {
                       c.backward.forgets = what;
                       c.backward.keeps_sum = keeps_sum;
                   });
    };
    if (asked.band.causal) add("weights without the causal mask", Forgotten::causal);
    if (excludes_keys(to.problem, asked)) add("weights without masks", Forgotten::masks);
    if (!asked.sink.empty() || asked.softmax_plus > 0)
        add("weights without the sink", Forgotten::sink);
}

void caps_back(Alternatives& to) {
    if (!is_backward(to) || to.problem.asked.softcap == 0) return;
    to.asked("1 - tanh^2(x / c)");
    set_back(to, "1", &BackwardConvention::cap, CapSlope::none);
    set_back(to, "1 - tanh^2(capped / c)", &BackwardConvention::cap, CapSlope::of_capped);
    set_back(to, "1 - capped^2", &BackwardConvention::cap, CapSlope::unscaled);
}

void turns_back(Alternatives& to) {
    if (!is_backward(to) || !to.problem.asked.rope.pairs) return;
    to.asked("backwards");
    for (const auto& [words, query, key] : {std::tuple("not rotated", 0, 0),
                                            {"rotated forwards", 1, 1},
                                            {"by queries not rotated", 0, -1},
                                            {"by keys not rotated", -1, 0},
                                            {"by queries rotated forwards", 1, -1},
                                            {"by keys rotated forwards", -1, 1}})
        to.add(words, with_others, [query = query, key = key](Conventions& c) {
            c.backward.query_turns = query;
            c.backward.key_turns = key;
        });
}

void parameters_back(Alternatives& to) {
    if (!is_backward(to) || !to.problem.plan.has_parameters()) return;
    to.asked("weights as stored");
    set_back(to, "weights transposed", &BackwardConvention::transposes_weights, true);
    to.asked("biases summed over tokens", 1);
    set_back(to, "biases averaged over tokens", &BackwardConvention::averages_biases, true);
}

constexpr ConventionRow conventions_of_backward[] = {
    {"loss", "loss ", losses_back,
     [](const Problem&, const Conventions& c) {
         return "--loss " + std::string(name_of(loss_names, *c.backward.loss));
     }},
    {"grad_factor", "gradients times ", factors_back, no_flag, nullptr,
     [](Conventions& c) -> double& { return c.backward.factor; }},
    {"grad_scale", "scale in gradients: ", scales_back},
    {"grad_groups", "gradients by shared heads: ", groups_back},
    {"grad_dropout", "dropout backward: ", dropouts_back},
    {"grad_softmax", "softmax backward: ", row_terms_back},
    {"grad_weights", "recomputed backward: ", forgotten_back},
    {"grad_softcap", "soft cap's derivative ", caps_back},
    {"grad_rope", "gradients ", turns_back},
    {"grad_parameters", "gradients by parameters: ", parameters_back},
};

}  // namespace

const std::span<const ConventionRow> rows_of_backward = conventions_of_backward;

}  // namespace attn
