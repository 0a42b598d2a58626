// `attn explain`: one query of a question, step by step, in words and numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/explain/walk_page.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {

inline constexpr auto page_format_names = names_of(page_formats);

struct ExplainRequest {
    const PageFormat* format = nullptr;  ///< null: the output's suffix says
    std::optional<std::uint64_t> head, batch;
    std::string token_label;  ///< the query by its label, which wins over the request's token
    bool full = false;        ///< every key, number and term is shown
};

/// Computes the request's question for one query, its `token` or one in the middle, and writes the
/// walk to the request's output. What the request says of its answer's form (emit, format, pretty,
/// nonfinite, average_heads) has no place here. Errors: as for the question itself, and kind usage
/// for heads and batch entries that are not there, and for full pages that are too long. Gives the
/// question's notes.
std::vector<std::string> explain(const ExplainRequest& explain, const Request& flags);

/// The same for a result that was computed before: its numbers are shown as they are. Of the
/// request only what a walk has itself counts: token, precision and output. Errors:
/// kinds io and usage; kind input for files that are no such result, or whose arrays do not belong
/// together.
void explain_result(const ExplainRequest& explain, const std::string& path, const Request& flags);

}  // namespace attn::cli
