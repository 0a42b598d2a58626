#include "core/check/departures.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace attn {
namespace {

constexpr DepartureRow departure_rows[] = {
    {Convention::mask_polarity, alternatives::mask_polarities},
    {Convention::masked_value, alternatives::masked_values},
    {Convention::causal_align, alternatives::causal_alignments},
    {Convention::causal, alternatives::causal_masks},
    {Convention::window_left, alternatives::left_windows},
    {Convention::window_right, alternatives::right_windows},
    {Convention::scale, alternatives::scales},
    {Convention::rope_pairs, alternatives::rope_pairs},
    {Convention::rope_base, alternatives::rope_bases},
    {Convention::rope_dims, alternatives::rope_widths},
    {Convention::rope_positions, alternatives::rope_positions},
    {Convention::rope_keys, alternatives::rope_uses},
    {Convention::head_groups, alternatives::head_groups},
    {Convention::softcap, alternatives::softcaps},
    {Convention::softcap_order, alternatives::score_orders},
    {Convention::alibi_sign, alternatives::alibi_signs},
    {Convention::alibi_slopes, alternatives::alibi_slopes},
    {Convention::sink, alternatives::sinks},
    {Convention::kv_lengths, alternatives::valid_keys},
    {Convention::softmax_axis, alternatives::softmax_axes},
    {Convention::transposed, alternatives::transpositions},
    {Convention::heads_split, alternatives::head_splits},
    {Convention::bias, alternatives::biases},
    {Convention::exchanged, alternatives::exchanges},
    {Convention::dropout, alternatives::dropouts},
    {Convention::precision, alternatives::precisions},
    {Convention::mask_method, alternatives::mask_methods},
    {Convention::out_proj, alternatives::output_projections},
};
static_assert(std::size(departure_rows) == std::size(convention_names));

constexpr bool rows_are_in_order() {
    for (std::size_t i = 0; i < std::size(departure_rows); ++i)
        if (static_cast<std::size_t>(departure_rows[i].convention) != i) return false;
    return true;
}
static_assert(rows_are_in_order());

}  // namespace

std::span<const DepartureRow> departures() {
    return departure_rows;
}

std::string shortest_decimal(double number) {
    char text[64];
    const double size = std::abs(number);
    const bool is_short = size == 0 || (size >= 1e-4 && size < 1e9);
    const auto end = std::to_chars(std::begin(text), std::end(text), number,
                                   is_short ? std::chars_format::fixed : std::chars_format::general)
                         .ptr;
    return {std::begin(text), end};
}

bool has_boolean_mask(const Problem& problem, std::size_t which) {
    return problem.masks[which] && problem.masks[which]->is_boolean;
}

bool has_additive_mask(const Problem& problem, std::size_t which) {
    return problem.masks[which] && !problem.masks[which]->is_boolean;
}

bool excludes_keys(const Problem& problem, const Conventions& conventions) {
    const BandConvention& band = conventions.band;
    if (band.causal || band.left >= 0 || band.right >= 0 || !conventions.kv_lengths.empty() ||
        conventions.first_key != 0)
        return true;
    for (std::size_t which : {0U, 1U}) {
        if (has_boolean_mask(problem, which) &&
            conventions.boolean_use[which] == BooleanUse::blocks)
            return true;
        if (!has_additive_mask(problem, which)) continue;
        if (conventions.bias_use[which] != BiasUse::added) return true;
        const std::vector<double>& mask = problem.masks[which]->values;
        if (conventions.bias_factor[which] != 0 &&
            std::any_of(mask.begin(), mask.end(), [](double x) { return std::isinf(x); }))
            return true;
    }
    return false;
}

std::vector<std::int64_t> top_left_offset(const Problem& problem) {
    return {static_cast<std::int64_t>(problem.plan.past_len)};
}

std::vector<std::int64_t> bottom_right_offset(const Problem& problem, const Conventions& by) {
    return PositionOffset::bottom_right(problem.plan.q_len, problem.plan.kv_len, by.kv_lengths)
        .values();
}

}  // namespace attn
