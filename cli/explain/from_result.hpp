// Reads an existing result for an explanation. Only the steps and sums that the page shows are
// computed again.
#pragma once

#include <string>

#include "cli/explain/explanation.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::cli {

struct ReadExplanation {
    Request request;  ///< with the result's settings and labels
    ExplanationSource source;
};

/// Reads a result with its mode and config. The query is the one labelled `token_label`; if that is
/// empty, the request's token, or one in the middle. Errors: kinds io and usage; kind input for a
/// file that is not a result, has no attention_weights of each head, or contradicts its config.
ReadExplanation read_computed(const std::string& path, const std::string& token_label,
                              const Request& request, ThreadPool& workers);

}  // namespace attn::cli
