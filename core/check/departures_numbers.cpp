// What is done to arrays as a whole: dropout, and the types that they are rounded to.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/check/departures.hpp"

namespace attn {
namespace {

using enum Rounded;

/// Arrays that are rounded together.
struct RoundedArrays {
    std::vector<Rounded> arrays;
    std::string_view words;
    std::size_t max_changes;
};

const std::vector<RoundedArrays>& arrays_rounded_together() {
    static const std::vector<RoundedArrays> all{
        {{inputs, parameters, unrotated, projected, products, scores, weights, outputs, context},
         "every array",
         2},
        {{score_factors, products}, "the product of queries and keys", 2},
        {{output_factors, outputs}, "the product of weights and values", 2},
        {{score_factors, products, output_factors, outputs}, "the products of attention", 2},
        {{score_factors}, "queries and keys where they are multiplied", 2},
        {{output_factors}, "weights and values where they are multiplied", 2},
        {{inputs, parameters}, "operands", 2},
        {{projected}, "queries, keys and values", 2},
        {{products}, "scores before the scale", 2},
        {{scores}, "scores", 2},
        {{weights}, "weights", 2},
        {{outputs, context}, "outputs", 2},
        {{inputs}, "inputs", 2},
        {{parameters}, "parameters", 2},
        {{unrotated}, "queries, keys and values before the rotation", 2},
        {{unrotated, projected}, "queries, keys and values before and after the rotation", 2},
        {{outputs}, "outputs of heads", 2},
        {{context}, "context vectors", 2},
        {{products, scores}, "scores before and after the scale", 2},
        {{products, weights}, "scores before the scale, and weights", 2},
        {{scores, weights}, "scores and weights", 2},
        {{products, scores, weights}, "scores before and after the scale, and weights", 2},
        {{inputs, parameters, weights}, "operands and weights", 2},
        {{projected, weights}, "queries, keys, values and weights", 2},
        {{inputs, parameters, unrotated, projected, outputs, context},
         "all but scores and weights",
         2},
        {{inputs, parameters, unrotated, projected, weights, outputs, context},
         "all but scores",
         2},
    };
    return all;
}

}  // namespace

std::vector<Alternative> alternatives::dropouts(const Problem& problem) {
    std::vector<Alternative> found;
    if (!problem.asked.drops) {
        if (problem.dropout_kept.empty()) return found;
        // Of a mask that their weights show; the factor is known only if nothing else differs.
        // Of six digits, which float32 has.
        const double seen = std::round((1 - 1 / problem.kept_weight) * 1e6) / 1e6;
        const auto applied = [&](const std::string& words, double factor) {
            found.push_back({"p = 0", words, [factor](Conventions& c) {
                                 c.drops = true;
                                 c.rescales_dropout = false;
                                 c.weight_factor = factor;
                             }});
        };
        const std::vector<double> usual{0.1, 0.2, 0.5, 0.05, 0.15, 0.25, 0.3,
                                        0.4, 0.6, 0.7, 0.75, 0.8,  0.9};
        for (const double p : usual) applied("p = " + shortest_decimal(p), 1 / (1 - p));
        applied("kept weights not divided by 1 - p", 1);
        if (std::find(usual.begin(), usual.end(), seen) == usual.end())
            applied("p = " + shortest_decimal(seen), problem.kept_weight);
        return found;
    }
    const std::string asked = "p = " + shortest_decimal(problem.plan.dropout.p);
    found.push_back({asked, "p = 0", [](Conventions& c) { c.drops = false; }});
    found.push_back({asked, asked + ", kept weights not divided by 1 - p",
                     [](Conventions& c) { c.rescales_dropout = false; }});
    return found;
}

std::vector<Alternative> alternatives::precisions(const Problem& problem) {
    const bool rotates = problem.asked.rope.pairs.has_value();
    const auto is_made = [&](Rounded array) {
        if (array == parameters) return problem.plan.projects;
        if (array == projected) return problem.plan.projects || rotates;
        if (array == unrotated) return problem.plan.projects && rotates;
        if (array == context) return problem.projection[3].has_value();
        return true;
    };
    const auto asked = std::string(row_of(problem.plan.dtype).name);
    std::vector<Alternative> found;
    for (Precision precision : {Precision::float16, Precision::bfloat16}) {
        std::vector<std::vector<Rounded>> tried{{}};
        for (const RoundedArrays& some : arrays_rounded_together()) {
            std::vector<Rounded> arrays;
            std::copy_if(some.arrays.begin(), some.arrays.end(), std::back_inserter(arrays),
                         is_made);
            if (std::find(tried.begin(), tried.end(), arrays) != tried.end()) continue;
            tried.push_back(arrays);
            std::vector<Conventions::Rounding> roundings;
            roundings.reserve(arrays.size());
            for (Rounded array : arrays) roundings.push_back({array, precision});
            found.push_back(
                {asked, std::string(some.words) + " in " + std::string(row_of(precision).name),
                 [roundings](Conventions& c) { c.roundings = roundings; }, 0, some.max_changes});
        }
    }
    return found;
}

}  // namespace attn
