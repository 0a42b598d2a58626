// A result that exists already: its arrays, for an explanation and to compare it with.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cli/explain/explanation.hpp"
#include "cli/output/pictures.hpp"
#include "cli/request/request.hpp"
#include "core/base/thread_pool.hpp"
#include "io/read/result_view.hpp"

namespace attn::cli {

struct StoredResult {
    io::ResultView view;
    Request request;                ///< the settings and labels of its config, with flags
    Plan plan;                      ///< that of its layout
    std::optional<LayerPart> part;  ///< the attention that is explained, of a model's result

    /// Errors: kinds io and usage; kind input for a file that is not a result, or contradicts its
    /// config.
    StoredResult(io::InputFile file, const Request& flags);
};

/// The arrays of the result, with the query of `token` or one in the middle, and the steps of its
/// softmax, which follow from the scores after the masks. Errors: kind usage for a query that it
/// lacks; kind input without attention_weights of each head.
ExplanationSource stored_source(StoredResult& stored, ThreadPool& workers);

/// The stored weights and mask of all queries; empty if the result has some of the queries.
Result stored_maps(const StoredResult& stored, ThreadPool& workers);

/// Compares the final arrays of one query with those of the result, as far as it has them. Errors:
/// kind input if they differ by more than other kernels and rounding explain.
void require_same_result(const StoredResult& stored, const ExplanationSource& computed,
                         ThreadPool& workers);

}  // namespace attn::cli
