// A result that was computed before, as what a walk needs: nothing is computed again but what the
// page adds up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "core/layer/result.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

struct ComputedResult {
    std::string place;  ///< for errors and words: the path, or <stdin>
    Plan plan;          ///< of the query that is walked through
    Result result;      ///< the arrays of that query, and steps between them that follow from them
    Result maps;        ///< mask and attention_weights of all queries that are there
    std::vector<std::string> additive_masks;  ///< as many as the scores show
    std::string missing;                      ///< arrays that a walk would have liked, as a list
    std::optional<std::uint64_t> digits;      ///< behind the point, where it was rounded to them
};

/// Reads a result with its mode and config. The request's settings become the result's, and its
/// query is that of the label, unless it is empty, the request's token, or one in the middle.
/// Errors: kinds io and usage; kind input for what is no result, has no attention_weights of each
/// head, or does not fit its config.
ComputedResult read_computed(const std::string& path, const std::string& token_label,
                             Request& request, ThreadPool& workers);

/// The token of a label. Errors: kind usage, where none or more than one is called so.
std::size_t token_called(const std::string& label, const Request& request);

}  // namespace attn::cli
