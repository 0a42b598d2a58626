// Where a command has nothing to read but a keyboard.
#pragma once

#include <string>

#include "cli/request/request.hpp"

namespace attn::cli {

/// Nobody types a matrix: where standard input is a keyboard, it is taken for a forgotten input.
/// `missing` says what is and how to give it. Errors: kind usage at `command`.
void refuse_keyboard(const std::string& command, const std::string& missing);

/// The same of a question's input, where the request names none.
void require_input(const Request& request, const std::string& command);

}  // namespace attn::cli
