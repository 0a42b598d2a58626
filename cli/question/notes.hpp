// Notes, one line each, on answers that may not be what was meant.
#pragma once

#include <string>
#include <vector>

#include "cli/request/request.hpp"
#include "core/plan/plan.hpp"

namespace attn::cli {

/// The note on a result that is the input of a next layer although it also has its own inputs.
/// `path` is the result's name, or empty.
std::string note_of_next_layer(const std::string& path);

/// The note on sdpa operands of rank 3 with packed heads, whose first axis may be the heads
/// instead; empty for other operands.
std::string note_of_packed_heads(const Request& request, const Plan& plan);

/// Whether to show a note on something usual that may be unintended: only if the note is not empty
/// and standard error is a terminal.
bool is_for_terminal(const std::string& note);

/// Writes one line per note to standard error.
void show_notes(const std::vector<std::string>& notes);

}  // namespace attn::cli
