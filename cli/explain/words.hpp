// What the page says of each score step and each mask: one row for each row of core's tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/layer/mask_rows.hpp"
#include "core/operator/score_steps.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

class PageQuotes;

struct StepWords {
    std::string_view key;
    std::string_view title;  ///< of the step's part of a page
    /// Describes the effect of an application on one query's scores.
    std::string (*words)(const ScoreRow& row, std::size_t index, const PageQuotes& quotes);
};

struct MaskWords {
    std::string_view key;
    /// Describes the effect of the rule on one batch entry.
    std::string (*words)(const Plan& plan, std::size_t batch, const PageQuotes& quotes);
};

const StepWords& words_of(const ScoreStep& step);
const MaskWords& words_of(const MaskRow& row);

/// Describes the effect of an additive mask.
std::string additive_mask_words(std::size_t index, const PageQuotes& quotes);

}  // namespace attn::cli
