// The table of options: one row each, bound to a field of the request.
#pragma once

#include <span>
#include <string_view>

#include "cli/args/option.hpp"

namespace attn::cli {

/// All options, by group. Help, `config` and checks of the options follow this order.
std::span<const Option> options();

/// The option with this key, or null.
const Option* find_option(std::string_view key);

/// Whether the value of this key in a request may be the name of a file.
bool names_file(std::string_view key);

}  // namespace attn::cli
