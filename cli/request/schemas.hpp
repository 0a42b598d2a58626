// The "schema" of each of attn's own documents; data/schema describes their members.
#pragma once

#include <string_view>

namespace attn::cli::schemas {

inline constexpr std::string_view result = "attn.result/1", index = "attn.index/1",
                                  weights = "attn.weights/1", cost = "attn.cost/1",
                                  comparison = "attn.comparison/1",
                                  inspection = "attn.inspection/1", tokens = "attn.tokens/1",
                                  check = "attn.check/1", stats = "attn.stats/1";
inline constexpr std::string_view all[] = {result,     index,  weights, cost, comparison,
                                           inspection, tokens, check,   stats};

}  // namespace attn::cli::schemas
