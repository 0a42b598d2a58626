// What is done to arrays as a whole: projections, heads, dropout, rounding, excluded keys.

#include "core/check/departures.hpp"

namespace attn {
namespace {

using Used = std::array<Tensor, 3>;
constexpr Used in_place{Tensor::query, Tensor::key, Tensor::value};

template <class Tensors>
std::string words_of_tensors(const Tensors& tensors) {
    constexpr std::string_view names[] = {"query", "key", "value", "out"};
    std::string words;
    for (const Tensor tensor : tensors)
        words += (words.empty() ? "" : ", ") + std::string(names[index_of(tensor)]);
    return words;
}

/// Turns the flag of each of these tensors, then of all of them, then of all but `out`, then of any
/// others.
void add_subsets(Alternatives& to, const PerTensor<bool>& tensors,
                 PerTensor<bool> Conventions::*flags, std::string_view before,
                 std::string_view after) {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (tensors[i]) all.push_back(static_cast<Tensor>(i));
    for (int rank = 0; rank < 4; ++rank)
        for (std::size_t bits = 1; bits < std::size_t{1} << all.size(); ++bits) {
            std::vector<Tensor> some;
            for (std::size_t i = 0; i < all.size(); ++i)
                if ((bits >> i & 1U) != 0) some.push_back(all[i]);
            const int own = some.size() == 1                                 ? 0
                            : some.size() == all.size()                      ? 1
                            : some.size() == 3 && some.back() != Tensor::out ? 2
                                                                             : 3;
            if (own != rank) continue;
            to.add(concat(before, words_of_tensors(some), after), rank < 3 ? 3 : 2, [=](auto& c) {
                for (const Tensor tensor : some) (c.*flags)[index_of(tensor)] ^= true;
            });
        }
}

bool is_square(const Problem& problem, Tensor tensor) {
    const Plan& plan = problem.plan;
    if (const auto& projection = problem.projection[index_of(tensor)])
        return projection->d_in == projection->d_out && projection->d_in > 1;
    if (tensor == Tensor::out) return false;
    const std::size_t rows = tensor == Tensor::query ? plan.q_len : plan.kv_len - plan.past_len;
    const std::size_t columns = tensor == Tensor::value ? plan.d_v : plan.d_k;
    return rows == columns && rows > 1;
}

void transpositions(Alternatives& to) {
    const Problem& problem = to.problem;
    const Plan& plan = problem.plan;
    to.asked("as given");
    PerTensor<bool> square{};
    for (std::size_t i = 0; i < square.size(); ++i)
        square[i] = is_square(problem, static_cast<Tensor>(i));
    add_subsets(to, square, &Conventions::transposed, "", " transposed");
    if (problem.heads_in == HeadsIn::axis && plan.d_k > 1 && plan.kv_len - plan.past_len > 1)
        to.add("key reshaped to (d_k, tokens) without transposing",
               [](auto& c) { c.transposed[index_of(Tensor::key)] = true; });
    to.asked("as given", 1);
    const auto& mask = problem.mask(0);
    if (mask && mask->shape[2] == mask->shape[3] && mask->shape[3] > 1)
        to.set("mask transposed", &Conventions::mask_transposed, true);
}

bool same_sources(const Problem& problem) {
    return problem.source[0].value == problem.source[1].value;
}

std::string words_of_split(HeadSplit split) {
    constexpr const char* words[] = {"columns in order",
                                     "reshaped without transposing",
                                     "(tokens, heads * d) read as (heads, tokens, d)",
                                     "every heads-th column",
                                     "columns of (3, heads, d) read as (heads, 3, d)",
                                     "columns of (heads, 3, d) read as (3, heads, d)"};
    return words[static_cast<std::size_t>(split)];
}

void head_splits(Alternatives& to) {
    using enum HeadSplit;
    const Problem& problem = to.problem;
    const Plan& plan = problem.plan;
    const bool is_joined = !plan.shown.separate_heads, has_columns = plan.projects || plan.packed;
    if (plan.heads == 1 || plan.independent_heads()) return;
    const auto add = [&](HeadSplit split, std::size_t most = 3) {
        to.set(words_of_split(split), &Conventions::split, split, most);
    };
    // Programs forget both transposes, or none.
    const auto add_both = [&](const char* words, HeadSplit split, HeadSplit merged) {
        to.add(words, 2, [=](auto& c) {
            c.split = split;
            c.merged = merged;
        });
    };
    const auto add_merged = [&](HeadSplit merged) {
        to.asked(words_of_split(columns), 1);
        to.set("outputs " + words_of_split(merged), &Conventions::merged, merged);
        to.asked(words_of_split(columns));
    };
    to.asked(words_of_split(columns));
    add(has_columns ? reshaped : joined);
    add(has_columns ? interleaved : reshaped);
    if (!has_columns || is_joined)
        add_both("split and merged without transposing", has_columns ? reshaped : joined, reshaped);
    if (has_columns && is_joined)
        add_both("split and merged as every heads-th column", interleaved, interleaved);
    // With as many queries as heads, this is only another order of the axes.
    if (!has_columns && plan.heads != plan.rows) add_merged(reshaped);
    if (plan.projects && plan.heads == plan.kv_heads && plan.d_k == plan.d_v &&
        problem.projection[0] && problem.projection[0]->d_in == problem.projection[1]->d_in &&
        same_sources(problem))
        for (const HeadSplit split : {packed, unpacked}) add(split, 2);
    if (!is_joined) return;
    add_merged(reshaped);
    add_merged(interleaved);
}

std::string layout_flag(const Problem& problem, const Conventions& found) {
    if (!problem.other_layout || found.split != *problem.other_layout) return "";
    return found.split == HeadSplit::packed ? "--qkv-layout heads" : "--qkv-layout parts";
}

void biases(Alternatives& to) {
    to.asked("added");
    add_subsets(to, to.problem.asked.adds_bias, &Conventions::adds_bias, "left out: ", "");
}

/// Swaps first, then one tensor used several times, then rotations.
constexpr Used other_uses[] = {
    {Tensor::key, Tensor::query, Tensor::value},   {Tensor::query, Tensor::value, Tensor::key},
    {Tensor::value, Tensor::key, Tensor::query},   {Tensor::query, Tensor::key, Tensor::key},
    {Tensor::query, Tensor::query, Tensor::value}, {Tensor::key, Tensor::key, Tensor::value},
    {Tensor::query, Tensor::value, Tensor::value}, {Tensor::query, Tensor::key, Tensor::query},
    {Tensor::value, Tensor::key, Tensor::value},   {Tensor::key, Tensor::value, Tensor::query},
    {Tensor::value, Tensor::query, Tensor::key},   {Tensor::query, Tensor::query, Tensor::query},
    {Tensor::key, Tensor::key, Tensor::key},       {Tensor::value, Tensor::value, Tensor::value},
};

void exchanges(Alternatives& to) {
    const Problem& problem = to.problem;
    const Plan& plan = problem.plan;
    const auto& projection = problem.projection;
    const std::string asked = words_of_tensors(in_place);
    to.asked(asked);
    for (const Used& used : other_uses)
        to.set(words_of_tensors(used), &Conventions::used, used, &used < other_uses + 3 ? 3 : 2);
    if (!plan.projects || same_sources(problem) || !projection[0] || !projection[1] ||
        projection[0]->d_in != projection[1]->d_in)
        return;
    to.asked("weights of " + asked, 1);
    for (const Used& used : other_uses)
        if (plan.heads == plan.kv_heads)
            to.set("weights of " + words_of_tensors(used), &Conventions::projected_by, used, 2);
    if (plan.q_len != plan.kv_len - plan.past_len) return;
    to.asked("queries from the input, keys and values from the context", 2);
    const auto from = [&](Tensor query, Tensor key, const char* words) {
        to.set(words, &Conventions::projected_from, Used{query, key, key});
    };
    from(Tensor::key, Tensor::query, "queries from the context, keys and values from the input");
    from(Tensor::query, Tensor::query, "all from the input");
    from(Tensor::key, Tensor::key, "all from the context");
}

/// Drawn parameters that are used in place of others are drawn in another order.
std::string exchanges_flag(const Problem& problem, const Conventions& found) {
    const Settings& s = problem.plan.config;
    if (!problem.plan.draws_parameters() || s.init == Init::mha || row_of(s.mode).context ||
        found.projected_by != in_place || found.projected_from != in_place)
        return "";
    constexpr std::array<std::string_view, 3> names{"query", "key", "value"};
    std::vector<std::string> order = s.draw_order;
    if (order.empty()) order.assign(names.begin(), names.end());
    std::string list;
    for (const std::string& drawn : order) {
        std::size_t slot = 0;
        while (slot < 3 && names[index_of(found.used[slot])] != drawn) ++slot;
        if (slot == 3 && drawn != "out") return "";
        list += (list.empty() ? "" : ",") + (slot == 3 ? drawn : std::string(names[slot]));
    }
    return "--draw-order " + list;
}

void precisions(Alternatives& to) {
    using enum Rounded;
    struct Together {
        std::vector<Rounded> arrays;
        const char* words;
    };
    static const std::vector<Together> rounded_together{
        {{inputs, parameters, unrotated, projected, products, scores, weights, outputs, context},
         "every array"},
        {{score_factors, products}, "the product of queries and keys"},
        {{output_factors, outputs}, "the product of weights and values"},
        {{score_factors, products, output_factors, outputs}, "the products of attention"},
        {{score_factors}, "queries and keys where they are multiplied"},
        {{output_factors}, "weights and values where they are multiplied"},
        {{inputs, parameters}, "operands"},
        {{projected}, "queries, keys and values"},
        {{products}, "scores before the scale"},
        {{scores}, "scores"},
        {{weights}, "weights"},
        {{outputs, context}, "outputs"},
        {{inputs}, "inputs"},
        {{parameters}, "parameters"},
        {{unrotated}, "queries, keys and values before the rotation"},
        {{unrotated, projected}, "queries, keys and values before and after the rotation"},
        {{outputs}, "outputs of heads"},
        {{context}, "context vectors"},
        {{products, scores}, "scores before and after the scale"},
        {{products, weights}, "scores before the scale, and weights"},
        {{scores, weights}, "scores and weights"},
        {{products, scores, weights}, "scores before and after the scale, and weights"},
        {{inputs, parameters, weights}, "operands and weights"},
        {{projected, weights}, "queries, keys, values and weights"},
        {{inputs, parameters, unrotated, projected, outputs, context},
         "all but scores and weights"},
        {{inputs, parameters, unrotated, projected, weights, outputs, context}, "all but scores"},
    };
    const Problem& problem = to.problem;
    const bool projects = problem.plan.projects, rotates = problem.asked.rope.pairs.has_value();
    const auto is_made = [&](Rounded array) {
        if (array == parameters) return projects;
        if (array == projected) return projects || rotates;
        if (array == unrotated) return projects && rotates;
        return array != context || problem.projection[3].has_value();
    };
    to.asked(std::string(row_of(problem.plan.config.dtype).name));
    for (const NumberType precision : {NumberType::float16, NumberType::bfloat16})
        for (const Together& some : rounded_together) {
            std::vector<Conventions::Rounding> roundings;
            for (const Rounded array : some.arrays)
                if (is_made(array)) roundings.push_back({array, precision});
            to.set(concat(some.words, " in ", row_of(precision).name), &Conventions::roundings,
                   roundings, 2);
        }
}

void mask_methods(Alternatives& to) {
    const Problem& problem = to.problem;
    const Plan& plan = problem.plan;
    constexpr const char* words[] = {"neg-inf", "renormalize",
                                     "weights times the mask, not renormalized"};
    to.asked(words[static_cast<std::size_t>(problem.asked.blocking)]);
    for (const Blocking blocking : {Blocking::before, Blocking::renormalize, Blocking::after})
        to.set(words[static_cast<std::size_t>(blocking)], &Conventions::blocking, blocking);
    for (std::size_t i = 0; i < mask_operands.size(); ++i) {
        const std::string name = mask_operands[i]->key + std::string(" ");
        const auto use = [&](const char* said, MaskUse as) {
            to.add(name + said, [=](auto& c) { c.masks[i].use = as; });
        };
        to.asked(name + (has_mask(problem, i, true) ? "excludes keys" : "added"), 1 + i);
        if (has_mask(problem, i, true)) {
            use("added to the scores as 0 and 1", MaskUse::added);
            use("times the scores, as 0 and 1", MaskUse::multiplied);
            use("ignored", MaskUse::ignored);
        } else if (problem.mask(i)) {
            use("ignored", MaskUse::ignored);
        }
    }
    to.asked("mask of each entry for all its heads", 1 + mask_operands.size());
    for (std::size_t i = 0; i < mask_operands.size(); ++i)
        if (problem.mask(i) && problem.mask(i)->shape[0] > 1 && plan.heads > 1)
            to.set("masks tiled over entries and heads", &Conventions::mask_tiled, true);
}

std::string method_flag(const Problem& problem, const Conventions& found) {
    for (std::size_t i = 0; i < mask_operands.size(); ++i) {
        const auto& [use, keeps, factor] = found.masks[i];
        if (factor != 1 || (use != MaskUse::blocks && use != problem.asked.masks[i].use)) return "";
    }
    if (found.mask_tiled || found.blocking == Blocking::after) return "";
    return found.blocking == Blocking::before ? "--mask-method neg-inf"
                                              : "--mask-method renormalize";
}

/// Only where the projection keeps the number of columns; otherwise the shape shows it.
void output_projections(Alternatives& to) {
    const auto& out = to.problem.projection[index_of(Tensor::out)];
    to.asked("applied");
    if (out && out->d_in == out->d_out) to.set("left out", &Conventions::projects_out, false);
}

/// None for given weights, of which all must be used; for --init mha, which always has the
/// projection; or where dropout draws from the generator of the weights, since its draws would
/// differ.
std::string projection_flag(const Problem& problem, const Conventions& found) {
    const Plan& plan = problem.plan;
    const bool may_lack_it = plan.draws_parameters() && plan.config.init != Init::mha;
    const bool moves_dropout = plan.config.dropout > 0 && !plan.config.dropout_seed;
    if (!may_lack_it || moves_dropout || found.projects_out) return "";
    return problem.asked.adds_bias[index_of(Tensor::out)] ? "--no-out-proj --no-out-bias"
                                                          : "--no-out-proj";
}

void outputs(Alternatives& to) {
    const Problem& problem = to.problem;
    const Plan& plan = problem.plan;
    const std::pair<const char*, bool> orders[] = {
        {"", false},
        {"batch entries in the opposite order", plan.batch > 1},
        {"heads in the opposite order", plan.heads > 1},
        {"of each head the next one's", plan.heads > 2},
        {"tokens in the opposite order", plan.rows > 1},
        {"of each token the next one's", plan.rows > 2},
        {"of each token the previous one's", plan.rows > 2},
        {"columns in the opposite order", true},
        {"(tokens, heads) read as (heads, tokens)",
         plan.shown.separate_heads && plan.heads > 1 && plan.rows > 1}};
    to.asked("as computed");
    for (std::size_t i = 0; i < std::size(orders); ++i)
        if (orders[i].second)
            to.set(orders[i].first, &Conventions::output, &OutputConvention::order,
                   static_cast<OutputOrder>(i), 1);
    to.set("negated", &Conventions::output, &OutputConvention::factor, -1, 1);
    const std::size_t width = problem.projection[3] ? plan.d_out : plan.heads * plan.d_v;
    for (const bool adds : {false, true})
        for (const auto& [norm, words] : {std::pair(OutputNorm::none, ""),
                                          {OutputNorm::layer, ", after a layer norm"},
                                          {OutputNorm::rms, ", after an RMS norm"}})
            if (!adds || problem.source[0].columns == width)
                to.add(
                    concat(adds ? "with the residual (what queries are made of)" : "heads", words),
                    1, [=, norm = norm](auto& c) {
                        c.output.adds_source = adds;
                        c.output.norm = norm;
                    });
}

constexpr ConventionRow conventions_of_arrays[] = {
    {"output", "output: ", outputs},
    {"mask_factor", "additive mask times ", [](Alternatives&) {}, no_flag, nullptr,
     [](Conventions& c) -> double& { return c.masks[0].factor; }},
    {"output_factor", "output times ", [](Alternatives&) {}, no_flag, nullptr,
     [](Conventions& c) -> double& { return c.output.factor; }},
    {"transposed", "", transpositions},
    {.name = "heads_split",
     .beginning = "heads split: ",
     .add_alternatives = head_splits,
     .flag = layout_flag,
     .keeps_words = true},
    {"bias", "bias ", biases},
    {"exchanged", "", exchanges, exchanges_flag},
    {"precision", "rounded: ", precisions},
    {"mask_method", "", mask_methods, method_flag},
    {"out_proj", "output projection ", output_projections, projection_flag},
};

}  // namespace

const std::span<const ConventionRow> rows_of_arrays = conventions_of_arrays;

}  // namespace attn
