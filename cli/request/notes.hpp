// What may not be what was meant, though it is answered.
#pragma once

#include <string>

#include "cli/request/request.hpp"

namespace attn::cli {

/// A result is taken as the input of a next layer, though it holds the inputs that it was computed
/// from. `path` is how the result was named, or empty.
void note_next_layer(Request& request, const std::string& path);

/// One line on standard error for each of the request's notes.
void show_notes(const Request& request);

}  // namespace attn::cli
