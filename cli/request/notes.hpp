// What may not be what was meant, though it is answered.
#pragma once

#include <string>

#include "cli/request/request.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// A result is taken as the input of a next layer, though it holds the inputs that it was computed
/// from. `path` is how the result was named, or empty.
void note_next_layer(Request& request, const std::string& path);

/// Where standard error is a terminal: what is usual, but may not be meant. An empty note is none.
void note_on_terminal(Request& request, const std::string& note);

/// sdpa's operands of rank 3 with packed heads, whose first axis might be the heads as well.
void note_packed_heads(Request& request, const Plan& plan);

/// One line on standard error for each of the request's notes.
void show_notes(const Request& request);

}  // namespace attn::cli
