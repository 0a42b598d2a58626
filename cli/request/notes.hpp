// What may not be what was meant, though it is answered: notes, one line each.
#pragma once

#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// A result is taken as the input of a next layer, though it holds the inputs that it was computed
/// from. `path` is how the result was named, or empty.
std::string note_of_next_layer(const std::string& path);

/// sdpa's operands of rank 3 with packed heads, whose first axis might be the heads as well; empty
/// for any others.
std::string note_of_packed_heads(const Request& request, const Plan& plan);

/// What is usual, but may not be meant, is noted where standard error is a terminal. An empty note
/// is none.
bool is_for_terminal(const std::string& note);

/// One line on standard error for each note.
void show_notes(const std::vector<std::string>& notes);

}  // namespace attn::cli
