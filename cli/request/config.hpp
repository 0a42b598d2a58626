// A request's settings, so that it can be asked again.
#pragma once

#include <string>

#include "cli/request/request.hpp"

namespace attn::cli {

/// Every resolved setting, as a request without its inputs: a JSON object.
std::string config_of(const Request& request);

}  // namespace attn::cli
