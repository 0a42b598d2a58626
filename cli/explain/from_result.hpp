// Reads an existing result for an explanation.
#pragma once

#include <string>
#include <utility>

#include "cli/explain/explanation.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::cli {

/// `flags` with the settings and labels of a result, and its arrays with the steps that follow from
/// them. The query is the token of `flags`, or one in the middle. Errors: kinds io and usage; kind
/// input for a file that is not a result, has no attention_weights of each head, or contradicts its
/// config.
std::pair<Request, ExplanationSource> read_explained(const std::string& path, const Request& flags,
                                                     ThreadPool& workers);

}  // namespace attn::cli
