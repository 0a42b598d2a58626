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

/// Notes on operands whose shape has another meaning in other programs: heads or batch entries
/// first, tokens or heads first, tokens or batch entries first.
std::vector<std::string> notes_of_shapes(const Request& request, const Plan& plan);

/// Whether to show a note on something usual that may be unintended: only if the note is not empty
/// and standard error is a terminal.
bool is_for_terminal(const std::string& note);

/// Writes one line per note to standard error.
void show_notes(const std::vector<std::string>& notes);

}  // namespace attn::cli
