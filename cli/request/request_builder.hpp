// A request in the making: flags, a request document's keys, a model and the environment.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/args/args.hpp"
#include "cli/request/request.hpp"

namespace attn::cli {

/// Stages that add to a request own one of these and return the finished request. The first to set
/// a key wins, in the order of the stages: the command line, the request's document, files of
/// flags, the environment, the model. In a batch the document wins over the command line.
struct RequestBuilder {
    Request request;

    /// Stores a request document's value unless a flag has set the option already. `place` is where
    /// the key stands. Errors: kind usage; an unknown key names the nearest known one.
    void apply_key(const std::string& key, const nlohmann::json& value, const Place& place);

    /// Stores a value that a model or attn itself has written at `place`. Errors: kind input.
    void apply_value(const std::string& key, const nlohmann::json& value, const std::string& place);

    /// Labels as a request or an earlier result holds them, unless a flag says others. Errors: kind
    /// input at `place`.
    void apply_tokens(const nlohmann::json& value, const std::string& place);

    /// The flags of the environment that the request's mode has, once that is known. Errors: kind
    /// usage.
    void apply_deferred();

    /// The environment's ATTN_KERNEL, where neither a flag nor a key has named a kernel. Errors:
    /// kind usage.
    void apply_environment();
};

/// The defaults of a batch, held against the record's mode. Errors: kind usage.
void check_defaults(const Request& request);

/// The request with the flags that were given. Errors: kind usage.
Request with_flags(Request request, const Args& args);

/// One question as the words and flags of a mode's command ask for it. Errors: kind usage.
Request make_request(const Args& args);

}  // namespace attn::cli
