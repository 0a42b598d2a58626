// Projections, heads, and what is done to arrays as a whole.
#include <algorithm>

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
    int rank = 0;  ///< of more usual ones it is smaller

    std::size_t max_changes() const { return rank < 3 ? 3 : 2; }
};

/// Each of the tensors for which `is_in` is true, then all of them, then all but `out`, then any
/// others.
template <class IsIn>
std::vector<Subset> subsets_of_tensors(IsIn is_in) {
    std::vector<Tensor> all;
    for (Tensor tensor : {Tensor::query, Tensor::key, Tensor::value, Tensor::out})
        if (is_in(tensor)) all.push_back(tensor);
    const std::size_t count = std::size_t{1} << all.size();
    std::vector<Subset> subsets;
    for (std::size_t bits = 1; bits < count; ++bits) {
        Subset subset;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if ((bits >> i & 1U) == 0) continue;
            subset.tensors.push_back(all[i]);
            subset.words += (subset.words.empty() ? "" : ", ") + std::string(name_of(all[i]));
        }
        const std::size_t size = subset.tensors.size();
        const bool has_out = subset.tensors.back() == Tensor::out;
        subset.rank = size == 1 ? 0 : size == all.size() ? 1 : size == 3 && !has_out ? 2 : 3;
        subsets.push_back(std::move(subset));
    }
    std::stable_sort(subsets.begin(), subsets.end(),
                     [](const Subset& one, const Subset& other) { return one.rank < other.rank; });
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
        case HeadSplit::joined: return "(tokens, heads * d) read as (heads, tokens, d)";
        case HeadSplit::interleaved: return "every heads-th column";
        case HeadSplit::packed: return "columns of (3, heads, d) read as (heads, 3, d)";
        case HeadSplit::unpacked: return "columns of (heads, 3, d) read as (3, heads, d)";
    }
    return {};
}

bool fits(const Problem& problem, Tensor place, Tensor tensor) {
    if (place == tensor) return true;
    const Plan& plan = problem.plan;
    const auto width = [&](Tensor of) { return of == Tensor::value ? plan.d_v : plan.d_k; };
    if (width(place) != width(tensor)) return false;
    const bool crosses = (place == Tensor::query) != (tensor == Tensor::query);
    return !crosses || (plan.heads == plan.kv_heads && plan.q_len == plan.kv_len - plan.past_len);
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
    found.reserve(subsets.size());
    for (const Subset& subset : subsets)
        found.push_back({"as given", subset.words + " transposed",
                         [tensors = subset.tensors](Conventions& c) {
                             for (Tensor tensor : tensors)
                                 c.transposed[static_cast<std::size_t>(tensor)] ^= true;
                         },
                         0, subset.max_changes()});
    const Plan& plan = problem.plan;
    if (problem.heads_in == HeadsIn::axis && !is_square(problem, Tensor::key) && plan.d_k > 1 &&
        plan.kv_len - plan.past_len > 1)
        found.push_back(
            {"as given", "key reshaped to (d_k, tokens) without transposing",
             [](Conventions& c) { c.transposed[static_cast<std::size_t>(Tensor::key)] = true; }});
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
    const auto add_both = [&](const char* words, HeadSplit split, HeadSplit merged) {
        found.push_back({asked, words,
                         [split, merged](Conventions& c) {
                             c.split = split;
                             c.merged = merged;
                         },
                         0, 2});
    };
    if (plan.projects || plan.packed) {
        add(HeadSplit::reshaped, 3);
        add(HeadSplit::interleaved, 3);
        if (!plan.shown.separate_heads) {  // programs forget both transposes, or none
            add_both("split and merged without transposing", HeadSplit::reshaped,
                     HeadSplit::reshaped);
            add_both("split and merged as every heads-th column", HeadSplit::interleaved,
                     HeadSplit::interleaved);
        }
    } else {
        add(HeadSplit::joined, 3);
        add(HeadSplit::reshaped, 3);
        add_both("split and merged without transposing", HeadSplit::joined, HeadSplit::reshaped);
        // With as many queries as heads, this is only another order of the axes.
        if (plan.heads != plan.rows)
            found.push_back({asked, "outputs " + std::string(words_of_split(HeadSplit::reshaped)),
                             [](Conventions& c) { c.merged = HeadSplit::reshaped; }, 1});
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
    found.reserve(subsets.size());
    for (const Subset& subset : subsets)
        found.push_back({"added", "left out: " + subset.words,
                         [tensors = subset.tensors](Conventions& c) {
                             for (Tensor tensor : tensors)
                                 c.adds_bias[static_cast<std::size_t>(tensor)] = false;
                         },
                         0, subset.max_changes()});
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

/// Only where the projection keeps the number of columns; otherwise the shape shows it.
std::vector<Alternative> alternatives::output_projections(const Problem& problem) {
    const auto& out = problem.projection[static_cast<std::size_t>(Tensor::out)];
    if (!out || out->d_in != out->d_out) return {};
    return {{"applied", "left out", [](Conventions& c) { c.projects_out = false; }}};
}

}  // namespace attn
