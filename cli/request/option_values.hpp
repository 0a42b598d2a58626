// Values of options: how they come into a request, and out of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/args/option.hpp"

namespace attn::cli {

/// Stores a value, as a request's key has it; says what is wrong with it and what was expected, or
/// nothing.
std::string store(Request& request, const Option& option, const nlohmann::json& value);

/// Appends the value for `config` as JSON, or nothing where it is not said.
void append_value(std::string& out, const Option& option, const Request& request);

/// A flag's text as the value that its key would have. Text that does not fit stays a string, and
/// `store` says what is wrong with it.
nlohmann::json value_of(const Option& option, const std::string& text);

/// A list of words as --tokens has it: parts between commas, or JSON. Empty where it is neither.
std::vector<std::string> word_list(const std::string& text);

/// Parts of a list written with commas, as on the command line, without the blanks round them.
std::vector<std::string> split_list(const std::string& text);

}  // namespace attn::cli
