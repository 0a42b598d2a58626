// The resolved settings of a request, from which it can be repeated.
#pragma once

#include <string>

#include "cli/request/request.hpp"

namespace attn::cli {

/// Every resolved setting as a JSON object: a request without its inputs.
std::string config_of(const Request& request);

}  // namespace attn::cli
