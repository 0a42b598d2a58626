// Converts the values of options to fields of a request and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/args/option.hpp"

namespace attn::cli {

/// Stores a value in the form of a request's key. Returns what is wrong with it and what was
/// expected, or an empty string.
std::string store(Request& request, const Option& option, const nlohmann::json& value);

/// Appends the value for `config` as JSON, or nothing if it is not given.
void append_value(std::string& out, const Option& option, const Request& request);

/// A flag's text as the value that its key would have. Text that does not fit stays a string, which
/// `store` rejects.
nlohmann::json value_of(const Option& option, const std::string& text);

/// A list of words in the syntax of --tokens: comma-separated, or JSON. Empty if it is neither.
std::vector<std::string> word_list(const std::string& text);

/// The comma-separated parts of a list, as on the command line, without surrounding blanks.
std::vector<std::string> split_list(const std::string& text);

}  // namespace attn::cli
