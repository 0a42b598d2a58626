// `attn explain`: explains one query of a question step by step, in words and numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/page/render.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {

inline constexpr auto page_format_names = names_of(page_formats);

struct ExplainRequest {
    const PageFormat* format = nullptr;  ///< null: by the output's suffix
    std::optional<std::uint64_t> head, batch;
    bool full = false;  ///< show every key, number and term
};

/// Computes the request's question for one query and writes the explanation to the request's
/// output. The query is `token`, or one in the middle by default. Settings for the form of an
/// answer (emit, format, pretty, nonfinite, average_heads) are ignored. Errors: those of the
/// question; kind usage for heads and batch entries that do not exist, and for full pages that are
/// too long. Returns the question's notes.
std::vector<std::string> explain(const ExplainRequest& explain, const Request& flags);

/// The same for a result that was computed before, whose numbers are shown unchanged. Only token,
/// precision and output of the request apply. Errors: kinds io and usage; kind input for files that
/// are not such a result, or whose arrays do not belong together.
void explain_result(const ExplainRequest& explain, const std::string& path, const Request& flags);

}  // namespace attn::cli
