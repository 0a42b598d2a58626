// Turns a result into what is written.
#pragma once

#include "cli/request.hpp"
#include "core/result.hpp"

namespace attn::cli {

/// Writes the result in the request's format to the request's output, whole or not at all.
void write_report(const Request& request, Result result);

}  // namespace attn::cli
