// Every flag, declared once: its place in the request, its default, its check and its help.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/request/request.hpp"

namespace attn::cli {

/// A set of modes, one bit each.
using Modes = unsigned;
constexpr Modes in(Mode mode) {
    return 1u << static_cast<unsigned>(mode);
}

/// How a flag's text becomes the JSON value that its key would have in a request.
enum class Kind { boolean, whole, seed, real, text };

struct Option {
    std::string name;           ///< the flag without its dashes
    std::string key;            ///< the name with '_' for '-'
    std::string key_in_config;  ///< `,"key":`
    std::string group;
    Modes modes = 0;  ///< where it may stand
    Kind kind = Kind::text;
    std::string argument;  ///< the placeholder in help; empty for a boolean
    std::string help;      ///< ends with the default
    Modes negated_in = 0;  ///< where help shows --no-NAME: the default is true
    bool is_key = true;    ///< may stand in a request document
    bool is_flag = true;   ///< may stand on the command line

    /// Stores a value; returns what is wrong with it and what was expected, or nothing.
    std::function<std::string(Request&, const nlohmann::json&)> store;
    /// Appends the value for `config` as JSON, or nothing where there is none. Empty where the
    /// option is no part of it.
    std::function<void(std::string&, const Request&)> write;
};

const std::vector<Option>& options();

/// The option of this key, or null.
const Option* find_option(std::string_view key);

/// Stores a request document's value unless a flag has set the option already. `place` is where
/// the key stands. Errors: kind usage; an unknown key names the nearest known one.
void apply_key(Request& request, const std::string& key, const nlohmann::json& value,
               const Place& place);

/// The defaults of a batch, held against the record's mode. Errors: kind usage.
void check_defaults(const Request& request);

/// The environment's ATTN_KERNEL, where neither a flag nor a key has named a kernel. Errors: kind
/// usage.
void apply_environment(Request& request);

/// Every resolved setting, as a request without its inputs: a JSON object.
std::string config_of(const Request& request);

}  // namespace attn::cli
