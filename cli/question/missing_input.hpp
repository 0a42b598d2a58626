// Errors for commands whose only input would be a keyboard.
#pragma once

#include <string>

#include "cli/request/request.hpp"

namespace attn::cli {

/// Fails if standard input is a terminal: nobody types a matrix, so the input was forgotten.
/// `missing` states what is missing and how to give it. Errors: kind usage at `command`.
void refuse_keyboard(const std::string& command, const std::string& missing);

/// The same for the input of a question, if the request names none.
void require_input(const Request& request, const std::string& command);

}  // namespace attn::cli
