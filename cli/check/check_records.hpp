// `attn check REQUESTS.ndjson --against RESULTS.ndjson`: a verdict for each request.
#pragma once

#include <string>

#include "cli/check/check.hpp"

namespace attn::cli {

/// Whether a file holds one request a line. A single result is a question.
bool holds_requests(const io::InputFile& file);

/// Writes one line for each request of `file`, in order: attn.check/1 with its id, or its error. A
/// request is checked by the result with its id, or, if no result has an id, by that on the same
/// line. Results of no request follow, each with an error. The flags of the request are defaults.
/// Returns whether every result is right. Errors: kind usage for several programs; kind io.
bool check_records(const io::InputFile& file, const CheckRequest& request);

}  // namespace attn::cli
