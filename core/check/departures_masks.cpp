// How masks enter: polarity, the value of excluded keys, the method.
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/check/departures.hpp"

namespace attn {
namespace {

constexpr std::string_view mask_operands[] = {"mask", "key_padding_mask"};

std::string of_mask(std::size_t which, std::string_view words) {
    return std::string(mask_operands[which]) + " " + std::string(words);
}

struct MaskedValue {
    double value;
    std::string_view words;
};

/// In programs and bug reports: transformers, fairseq, the notebooks; 1e-9 is a frequent typing
/// error for -1e9.
constexpr MaskedValue masked_value_rows[] = {
    {-1e9, "-1e9"},
    {-10000, "-10000"},
    {-3.4028234663852886e38, "finfo(float32).min"},
    {-65504, "finfo(float16).min"},
    {-3.3895313892515355e38, "finfo(bfloat16).min"},
    {0, "0"},
    {1e-9, "1e-9"},
    {-1, "-1"},
    {-10, "-10"},
    {-100, "-100"},
    {-1000, "-1000"},
    {-50000, "-50000"},
    {-1e5, "-1e5"},
    {-1e6, "-1e6"},
    {-1e10, "-1e10"},
    {-1e20, "-1e20"},
    {-1e30, "-1e30"},
    {-1.7014117331926443e38, "finfo(float32).min / 2"},
    {-2.3819763e38, "-2.3819763e38"},
};

}  // namespace

std::vector<Alternative> alternatives::mask_polarities(const Problem& problem) {
    std::vector<Alternative> found;
    for (std::size_t which : {0U, 1U}) {
        if (has_boolean_mask(problem, which)) {
            const bool keeps = problem.asked.true_keeps[which];
            found.push_back({keeps ? "keep" : "drop", keeps ? "drop" : "keep",
                             [which, keeps](Conventions& c) { c.true_keeps[which] = !keeps; },
                             which});
        }
        if (has_additive_mask(problem, which)) {
            found.push_back({of_mask(which, "added"), of_mask(which, "subtracted"),
                             [which](Conventions& c) { c.bias_factor[which] = -1; }, which});
            found.push_back(
                {of_mask(which, "added"), of_mask(which, "boolean, 0 blocks"),
                 [which](Conventions& c) { c.bias_use[which] = BiasUse::nonzero_keeps; }, which});
            found.push_back(
                {of_mask(which, "added"), of_mask(which, "boolean, 0 keeps"),
                 [which](Conventions& c) { c.bias_use[which] = BiasUse::nonzero_blocks; }, which});
        }
    }
    return found;
}

std::vector<Alternative> alternatives::masked_values(const Problem& problem) {
    std::vector<Alternative> found;
    found.push_back({"0 for queries without keys", "NaN for queries without keys",
                     [](Conventions& c) { c.empty_rows_are_nan = true; }});
    for (const MaskedValue& row : masked_value_rows) {
        const double value = row.value;
        found.push_back(
            {"-inf", std::string(row.words), [value](Conventions& c) { c.masked_value = value; }});
        if (value <= -1)
            found.push_back({"-inf", std::string(row.words) + " added", [value](Conventions& c) {
                                 c.masked_value = value;
                                 c.masked_value_is_added = true;
                             }});
    }
    // Without excluded keys in the question, these matter only with another change.
    if (!excludes_keys(problem, problem.asked)) found.resize(3);
    return found;
}

std::vector<Alternative> alternatives::mask_methods(const Problem& problem) {
    std::vector<Alternative> found;
    const auto words = [](Blocking blocking) -> std::string {
        switch (blocking) {
            case Blocking::before: return "neg-inf";
            case Blocking::renormalize: return "renormalize";
            case Blocking::after: return "weights times the mask, not renormalized";
        }
        return {};
    };
    const Blocking asked = problem.asked.blocking;
    for (Blocking blocking : {Blocking::before, Blocking::renormalize, Blocking::after})
        if (blocking != asked)
            found.push_back({words(asked), words(blocking),
                             [blocking](Conventions& c) { c.blocking = blocking; }});
    for (std::size_t which : {0U, 1U}) {
        const std::size_t setting = 1 + which;
        const auto use = [&](BooleanUse as, std::string_view said) {
            found.push_back({of_mask(which, "excludes keys"), of_mask(which, said),
                             [which, as](Conventions& c) { c.boolean_use[which] = as; }, setting});
        };
        if (has_boolean_mask(problem, which)) {
            use(BooleanUse::added, "added to the scores as 0 and 1");
            use(BooleanUse::multiplied, "times the scores, as 0 and 1");
            use(BooleanUse::ignored, "ignored");
        }
        if (has_additive_mask(problem, which)) {
            found.push_back({of_mask(which, "added"), of_mask(which, "ignored"),
                             [which](Conventions& c) { c.bias_factor[which] = 0; }, setting});
            found.push_back({of_mask(which, "added"), of_mask(which, "added twice"),
                             [which](Conventions& c) { c.bias_factor[which] = 2; }, setting});
        }
    }
    const Plan& plan = problem.plan;
    if (problem.masks[0] && problem.masks[0]->shape[0] == plan.batch && plan.batch > 1 &&
        plan.heads > 1)
        found.push_back({"mask of each entry for all its heads",
                         "masks tiled over entries and heads",
                         [](Conventions& c) { c.mask_tiled = true; }, 3});
    return found;
}

}  // namespace attn
