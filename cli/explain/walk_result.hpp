// A result that was computed before, as what a walk needs: nothing is computed again but what the
// page adds up.
#pragma once

#include <string>

#include "cli/explain/walk.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"

namespace attn::cli {

struct ComputedWalk {
    Request request;  ///< with the result's settings and labels
    WalkSource source;
};

/// Reads a result with its mode and config. Its query is that of the label, unless it is empty, the
/// request's token, or one in the middle. Errors: kinds io and usage; kind input for what is no
/// result, has no attention_weights of each head, or does not fit its config.
ComputedWalk read_computed(const std::string& path, const std::string& token_label,
                           const Request& request, ThreadPool& workers);

}  // namespace attn::cli
