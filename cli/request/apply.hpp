// What flags, a request's keys and the environment ask for, applied to a request.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/args/args.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {

/// Stores the flags that were given. Errors: kind usage.
void apply_flags(Request& request, const Args& args);

/// Stores a request document's value unless a flag has set the option already. `place` is where
/// the key stands. Errors: kind usage; an unknown key names the nearest known one.
void apply_key(Request& request, const std::string& key, const nlohmann::json& value,
               const Place& place);

/// Stores a value that a model or attn itself has written at `place`. Errors: kind input.
void apply_said(Request& request, const std::string& key, const nlohmann::json& value,
                const std::string& place);

/// The defaults of a batch, held against the record's mode. Errors: kind usage.
void check_defaults(const Request& request);

/// Applies the flags of the environment that the request's mode has, once that is known. Errors:
/// kind usage.
void apply_waiting(Request& request);

/// The environment's ATTN_KERNEL, where neither a flag nor a key has named a kernel. Errors: kind
/// usage.
void apply_environment(Request& request);

/// One question as the words and flags of a mode's command ask for it. Errors: kind usage.
Request request_of(const Args& args);

}  // namespace attn::cli
