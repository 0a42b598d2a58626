// A result that is read back, as if attn had just computed it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plot/plain_array.hpp"
#include "cli/request/result_file.hpp"
#include "core/operator/mask.hpp"
#include "core/plan/plan.hpp"
#include "io/plot/heat_map.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// The plan of a result that describes its layout; nothing for plain arrays. Errors: kind input,
/// where the layout contradicts the config.
std::optional<Plan> layout_plan(const ResultFile& result);

/// Takes the arrays out of the result, with the axes of its layout. Plain arrays have those that
/// their names and ranks suggest. Tokens that are given name the rows of a plain array, and its
/// columns where it has a token for each. Errors: kind input, where shapes or labels do not fit.
io::Report report_of(ResultFile& result, const std::optional<Plan>& plan, const Naming& given);

/// The rules that settings give; none for plain arrays.
std::shared_ptr<const Mask> rules_of(const std::optional<Plan>& plan);

/// Which cells are blocked: by the report's own mask, or else by the rules of its layers, which are
/// those of the first axis, where that is "layer", else one. The report must stay where it is.
/// Errors: kind input, where the mask has other queries and keys than another array.
io::IsBlocked is_blocked_in(const io::Report& report,
                            std::vector<std::shared_ptr<const Mask>> layers,
                            const std::string& place);

}  // namespace attn::cli
