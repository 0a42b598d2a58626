// Projections, heads, and what is done to arrays as a whole.
#include <algorithm>
#include <cmath>

#include "core/check/departures.hpp"

namespace attn {
namespace {

constexpr std::string_view tensor_names[] = {"query", "key", "value", "out"};

std::string_view name_of(Tensor tensor) {
    return tensor_names[static_cast<std::size_t>(tensor)];
}

using Used = std::array<Tensor, 3>;
constexpr Used in_place{Tensor::query, Tensor::key, Tensor::value};

std::string words_of_used(const Used& used) {
    std::string words;
    for (Tensor tensor : used) words += (words.empty() ? "" : ", ") + std::string(name_of(tensor));
    return words;
}

/// Swaps first, then the same tensor in several places, then rotations.
constexpr Used other_uses[] = {
    {Tensor::key, Tensor::query, Tensor::value},   {Tensor::query, Tensor::value, Tensor::key},
    {Tensor::value, Tensor::key, Tensor::query},   {Tensor::query, Tensor::key, Tensor::key},
    {Tensor::query, Tensor::query, Tensor::value}, {Tensor::key, Tensor::key, Tensor::value},
    {Tensor::query, Tensor::value, Tensor::value}, {Tensor::query, Tensor::key, Tensor::query},
    {Tensor::value, Tensor::key, Tensor::value},   {Tensor::key, Tensor::value, Tensor::query},
    {Tensor::value, Tensor::query, Tensor::key},   {Tensor::query, Tensor::query, Tensor::query},
    {Tensor::key, Tensor::key, Tensor::key},       {Tensor::value, Tensor::value, Tensor::value},
};

/// A change of some of four tensors.
struct Subset {
    std::vector<Tensor> tensors;
    std::string words;
};

/// Each of the tensors for which `is_in` is true, then all of queries, keys and values, then all.
template <class IsIn>
std::vector<Subset> subsets_of_tensors(IsIn is_in) {
    std::vector<Subset> subsets;
    std::vector<Tensor> all;
    for (Tensor tensor : {Tensor::query, Tensor::key, Tensor::value, Tensor::out}) {
        if (!is_in(tensor)) continue;
        subsets.push_back({{tensor}, std::string(name_of(tensor))});
        all.push_back(tensor);
    }
    const auto words = [](const std::vector<Tensor>& tensors) {
        std::string joined;
        for (Tensor tensor : tensors)
            joined += (joined.empty() ? "" : ", ") + std::string(name_of(tensor));
        return joined;
    };
    std::vector<Tensor> inner = all;
    inner.erase(std::remove(inner.begin(), inner.end(), Tensor::out), inner.end());
    if (inner.size() == 3) subsets.push_back({inner, words(inner)});
    if (all.size() == 4) subsets.push_back({all, words(all)});
    if (inner.size() == 3)
        for (std::size_t left_out = 0; left_out < 3; ++left_out) {
            std::vector<Tensor> two = inner;
            two.erase(two.begin() + static_cast<std::ptrdiff_t>(left_out));
            subsets.push_back({two, words(two)});
        }
    return subsets;
}

bool is_square(const Problem& problem, Tensor tensor) {
    const auto place = static_cast<std::size_t>(tensor);
    const Plan& plan = problem.plan;
    if (const auto& projection = problem.projection[place])
        return projection->d_in == projection->d_out && projection->d_in > 1;
    if (tensor == Tensor::out) return false;
    const std::size_t rows = tensor == Tensor::query ? plan.q_len : plan.kv_len - plan.past_len;
    const std::size_t columns = tensor == Tensor::value ? plan.d_v : plan.d_k;
    return rows == columns && rows > 1;
}

std::string_view words_of_split(HeadSplit split) {
    switch (split) {
        case HeadSplit::columns: return "columns in order";
        case HeadSplit::reshaped: return "reshaped without transposing";
        case HeadSplit::interleaved: return "every heads-th column";
        case HeadSplit::packed: return "query, key and value of each head side by side";
        case HeadSplit::unpacked: return "weights of each head side by side read as of all heads";
    }
    return {};
}

bool fits(const Problem& problem, Tensor place, Tensor tensor) {
    if (place == tensor) return true;
    const Plan& plan = problem.plan;
    const auto width = [&](Tensor of) { return of == Tensor::value ? plan.d_v : plan.d_k; };
    if (width(place) != width(tensor)) return false;
    const bool crosses = (place == Tensor::query) != (tensor == Tensor::query);
    return !crosses || (plan.heads == plan.kv_heads && plan.q_len == plan.kv_len);
}

bool all_fit(const Problem& problem, const Used& used) {
    for (std::size_t i = 0; i < used.size(); ++i)
        if (!fits(problem, in_place[i], used[i])) return false;
    return true;
}

bool same_sources(const Problem& problem) {
    return problem.source[0].value == problem.source[1].value;
}

}  // namespace

std::vector<Alternative> alternatives::head_groups(const Problem& problem) {
    std::vector<Alternative> found;
    const Plan& plan = problem.plan;
    if (plan.kv_heads == 1 || plan.kv_heads == plan.heads) return found;
    found.push_back(
        {"blocks", "interleaved", [](Conventions& c) { c.groups = HeadGroups::interleaved; }});
    found.push_back({"blocks", "the first key head for all",
                     [](Conventions& c) { c.groups = HeadGroups::first; }});
    return found;
}

std::vector<Alternative> alternatives::transpositions(const Problem& problem) {
    std::vector<Alternative> found;
    const std::vector<Subset> subsets =
        subsets_of_tensors([&](Tensor tensor) { return is_square(problem, tensor); });
    for (const Subset& subset : subsets)
        found.push_back({"", subset.words + " transposed",
                         [tensors = subset.tensors](Conventions& c) {
                             for (Tensor tensor : tensors)
                                 c.transposed[static_cast<std::size_t>(tensor)] ^= true;
                         },
                         0});
    for (Alternative& one : found) one.asked = "as given";
    const auto& mask = problem.masks[0];
    if (mask && mask->shape[2] == mask->shape[3] && mask->shape[3] > 1)
        found.push_back(
            {"as given", "mask transposed", [](Conventions& c) { c.mask_transposed = true; }, 1});
    return found;
}

std::vector<Alternative> alternatives::head_splits(const Problem& problem) {
    std::vector<Alternative> found;
    const Plan& plan = problem.plan;
    if (plan.heads == 1 || plan.independent_heads()) return found;
    const std::string asked(words_of_split(HeadSplit::columns));
    const auto add = [&](HeadSplit split, std::size_t most) {
        found.push_back({asked, std::string(words_of_split(split)),
                         [split](Conventions& c) { c.split = split; }, 0, most});
    };
    if (plan.projects || plan.packed) {
        add(HeadSplit::reshaped, 3);
        add(HeadSplit::interleaved, 3);
    }
    if (plan.projects && plan.heads == plan.kv_heads && plan.d_k == plan.d_v &&
        problem.projection[0] && problem.projection[0]->d_in == problem.projection[1]->d_in &&
        same_sources(problem)) {
        add(HeadSplit::packed, 2);
        add(HeadSplit::unpacked, 2);
    }
    if (!plan.shown.separate_heads)
        for (HeadSplit merged : {HeadSplit::reshaped, HeadSplit::interleaved})
            found.push_back({asked, "outputs " + std::string(words_of_split(merged)),
                             [merged](Conventions& c) { c.merged = merged; }, 1});
    return found;
}

std::vector<Alternative> alternatives::biases(const Problem& problem) {
    std::vector<Alternative> found;
    const std::vector<Subset> subsets = subsets_of_tensors(
        [&](Tensor tensor) { return problem.asked.adds_bias[static_cast<std::size_t>(tensor)]; });
    for (const Subset& subset : subsets) {
        const bool is_out = subset.tensors == std::vector<Tensor>{Tensor::out};
        found.push_back({"added", "left out: " + subset.words,
                         [tensors = subset.tensors](Conventions& c) {
                             for (Tensor tensor : tensors)
                                 c.adds_bias[static_cast<std::size_t>(tensor)] = false;
                         },
                         is_out ? std::size_t{1} : std::size_t{0}});
    }
    return found;
}

std::vector<Alternative> alternatives::exchanges(const Problem& problem) {
    std::vector<Alternative> found;
    const std::string asked = words_of_used(in_place);
    for (std::size_t i = 0; i < std::size(other_uses); ++i) {
        const Used& used = other_uses[i];
        if (all_fit(problem, used))
            found.push_back({asked, words_of_used(used), [used](Conventions& c) { c.used = used; },
                             0, i < 3 ? std::size_t{3} : std::size_t{2}});
    }
    if (!problem.plan.projects || same_sources(problem)) return found;
    const auto& projection = problem.projection;
    const bool same_width =
        projection[0] && projection[1] && projection[0]->d_in == projection[1]->d_in;
    if (!same_width) return found;
    for (const Used& used : other_uses) {
        bool weights_fit = true;
        for (std::size_t i = 0; i < used.size(); ++i)
            weights_fit = weights_fit && projection[static_cast<std::size_t>(used[i])]->d_out ==
                                             projection[i]->d_out;
        if (weights_fit && problem.plan.heads == problem.plan.kv_heads)
            found.push_back({"weights of " + asked, "weights of " + words_of_used(used),
                             [used](Conventions& c) { c.projected_by = used; }, 1, 2});
    }
    if (problem.plan.q_len != problem.plan.kv_len - problem.plan.past_len) return found;
    const auto from = [&](Tensor query, Tensor key, const std::string& words) {
        found.push_back({"queries from the input, keys and values from the context", words,
                         [query, key](Conventions& c) {
                             c.projected_from = {query, key, key};
                         },
                         2});
    };
    from(Tensor::key, Tensor::query, "queries from the context, keys and values from the input");
    from(Tensor::query, Tensor::query, "all from the input");
    from(Tensor::key, Tensor::key, "all from the context");
    return found;
}

std::vector<Alternative> alternatives::dropouts(const Problem& problem) {
    std::vector<Alternative> found;
    if (!problem.asked.drops) {
        if (problem.dropout_kept.empty()) return found;
        // Of a mask that their weights show; the factor is known only if nothing else differs.
        const double seen = 1 - 1 / problem.kept_weight;
        const auto applied = [&](const std::string& words, double factor) {
            found.push_back({"p = 0", words, [factor](Conventions& c) {
                                 c.drops = true;
                                 c.rescales_dropout = false;
                                 c.weight_factor = factor;
                             }});
        };
        for (double p : {0.1, 0.2, 0.5, 0.05, 0.15, 0.25, 0.3, 0.4, 0.6, 0.7, 0.75, 0.8, 0.9})
            applied("p = " + shortest_decimal(p), 1 / (1 - p));
        applied("kept weights not divided by 1 - p", 1);
        applied("p = " + shortest_decimal(std::round(seen * 1e4) / 1e4), problem.kept_weight);
        return found;
    }
    const std::string asked = "p = " + shortest_decimal(problem.plan.dropout.p);
    found.push_back({asked, "p = 0", [](Conventions& c) { c.drops = false; }});
    found.push_back({asked, asked + ", kept weights not divided by 1 - p",
                     [](Conventions& c) { c.rescales_dropout = false; }});
    return found;
}

std::vector<Alternative> alternatives::precisions(const Problem& problem) {
    (void)problem;
    using enum Rounded;
    struct Some {
        std::vector<Rounded> arrays;
        std::string_view words;
        std::size_t most_changes;
    };
    const Some some[] = {
        {{operands, projected, scores, weights, outputs}, "every array", 3},
        {{operands}, "operands", 3},
        {{projected}, "queries, keys and values", 3},
        {{scores}, "scores", 3},
        {{weights}, "weights", 3},
        {{outputs}, "outputs", 2},
        {{operands, projected, outputs}, "all but scores and weights", 2},
        {{operands, projected, weights, outputs}, "all but scores", 2},
        {{projected, weights}, "queries, keys, values and weights", 2},
        {{operands, weights}, "operands and weights", 2},
        {{scores, weights}, "scores and weights", 2},
        {{projected, scores, weights}, "all but operands and outputs", 2},
        {{projected, scores, weights, outputs}, "all but operands", 2},
        {{operands, projected}, "operands, queries, keys and values", 2},
        {{weights, outputs}, "weights and outputs", 2},
    };
    const auto type = std::string(row_of(problem.plan.dtype).name);
    std::vector<Alternative> found;
    for (Precision precision : {Precision::float16, Precision::bfloat16})
        for (const Some& one : some) {
            std::vector<Conventions::Rounding> roundings;
            for (Rounded what : one.arrays) roundings.push_back({what, precision});
            found.push_back(
                {type, std::string(one.words) + " in " + std::string(row_of(precision).name),
                 [roundings](Conventions& c) { c.roundings = roundings; }, 0, one.most_changes});
        }
    return found;
}

}  // namespace attn
