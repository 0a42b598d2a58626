// Labels of tokens: how a page shows them, and which token somebody means by one.
#pragma once

#include <cstddef>
#include <string>

#include "cli/request/request.hpp"

namespace attn::cli {

/// A label without the blanks round it, by which tokenizers mark where words start; one of blanks
/// alone in quotes. At most so many columns of it.
std::string shown_label(const std::string& label, std::size_t columns);

/// The token of a label: the one that is called just so, else the one that is but for the blanks
/// round it. Errors: kind usage, where none or more than one is.
std::size_t token_called(const std::string& label, const Request& request);

}  // namespace attn::cli
