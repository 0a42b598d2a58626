// A result that is read back, as if attn had just computed it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plot/plain_array.hpp"
#include "cli/request/result_file.hpp"
#include "core/operator/mask.hpp"
#include "io/plot/heat_map.hpp"
#include "io/write/report.hpp"

namespace attn::cli {

/// Takes the arrays out of the result. Tokens that are given name the rows of an array of another
/// program, and its columns where it has a token for each. Errors: kind input, where labels do not
/// fit.
io::Report report_of(ResultFile& result, const Naming& given);

/// Which cells a result blocks, where its own mask does not say so.
struct BlockRules {
    bool are_known = false;
    bool is_unknown_row = false;  ///< by its position, which the rules ask for
    std::shared_ptr<const Mask> mask;
};
BlockRules block_rules_of(const io::Report& report, const ResultFile& result);

/// Where the report's own mask says so; else where the rules do and the weight is 0. `layers` are
/// those of the first axis, where that is "layer", else one. The report must stay where it is.
/// Errors: kind input, where the mask has other queries and keys than another array.
io::IsBlocked is_blocked_in(const io::Report& report, std::vector<BlockRules> layers,
                            const std::string& place);

}  // namespace attn::cli
