// The table of departures: for each convention, what other programs do instead.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/check/problem.hpp"

namespace attn {

/// One change of a question's conventions.
struct Alternative {
    std::string asked, found;  ///< in words
    std::function<void(Conventions&)> change;
    /// Alternatives of one convention combine if they change different settings.
    std::size_t setting = 0;
    std::size_t max_changes = 3;  ///< in a match that has this one
};

struct DepartureRow {
    Convention convention;
    /// Those that can apply to the question; none of them leaves `problem.asked` as it is.
    std::vector<Alternative> (*alternatives)(const Problem& problem);
};

/// One row for each convention, in the order of the enumeration.
std::span<const DepartureRow> departures();

/// The flag with which attn computes `found`'s value of a convention; empty: there is none.
std::string flag_of(Convention convention, const Problem& problem, const Conventions& found);

/// In words, where they depend on several changes of a match; else empty.
std::string words_of(Convention convention, const Conventions& found);

/// The rows of the table.
namespace alternatives {

std::vector<Alternative> mask_polarities(const Problem& problem);
std::vector<Alternative> masked_values(const Problem& problem);
std::vector<Alternative> mask_methods(const Problem& problem);

std::vector<Alternative> causal_alignments(const Problem& problem);
std::vector<Alternative> causal_masks(const Problem& problem);
std::vector<Alternative> left_windows(const Problem& problem);
std::vector<Alternative> right_windows(const Problem& problem);
std::vector<Alternative> valid_keys(const Problem& problem);

std::vector<Alternative> scales(const Problem& problem);
std::vector<Alternative> softcaps(const Problem& problem);
std::vector<Alternative> score_orders(const Problem& problem);
std::vector<Alternative> alibi_signs(const Problem& problem);
std::vector<Alternative> alibi_slopes(const Problem& problem);
std::vector<Alternative> sinks(const Problem& problem);
std::vector<Alternative> softmax_axes(const Problem& problem);

std::vector<Alternative> rope_pairs(const Problem& problem);
std::vector<Alternative> rope_bases(const Problem& problem);
std::vector<Alternative> rope_widths(const Problem& problem);
std::vector<Alternative> rope_positions(const Problem& problem);
std::vector<Alternative> rope_uses(const Problem& problem);

std::vector<Alternative> head_groups(const Problem& problem);
std::vector<Alternative> transpositions(const Problem& problem);
std::vector<Alternative> head_splits(const Problem& problem);
std::vector<Alternative> biases(const Problem& problem);
std::vector<Alternative> output_projections(const Problem& problem);
std::vector<Alternative> exchanges(const Problem& problem);
std::vector<Alternative> dropouts(const Problem& problem);
std::vector<Alternative> precisions(const Problem& problem);

}  // namespace alternatives

/// The shortest decimal that reads back the same.
std::string shortest_decimal(double number);

/// Whether the mask (0) or the key padding mask (1) is given as a boolean one, or an additive one.
bool has_boolean_mask(const Problem& problem, std::size_t which);
bool has_additive_mask(const Problem& problem, std::size_t which);

/// Whether the conventions exclude keys; additive masks are read for -infinity.
bool excludes_keys(const Problem& problem, const Conventions& conventions);

/// The offsets that attn has for an alignment.
std::vector<std::int64_t> top_left_offset(const Problem& problem);
std::vector<std::int64_t> bottom_right_offset(const Problem& problem, const Conventions& by);

}  // namespace attn
