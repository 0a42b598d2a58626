// Turns a result into what is written.
#pragma once

#include "cli/request.hpp"
#include "core/result.hpp"
#include "core/workers.hpp"

namespace attn::cli {

/// Whether the request's format takes arrays while they are computed.
bool takes_streams(const Request& request);

/// Writes the result in the request's format to the request's output, whole or not at all.
void write_report(const Request& request, Result result, Workers& workers);

}  // namespace attn::cli
