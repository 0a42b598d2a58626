// Labels of tokens: how a page shows them, and which token a label refers to.
#pragma once

#include <cstddef>
#include <string>

#include "cli/request/request.hpp"

namespace attn::cli {

/// A label without its surrounding blanks, with which tokenizers mark the start of words. A label
/// of blanks only is quoted. Cut to at most `columns` columns.
std::string shown_label(const std::string& label, std::size_t columns);

/// The index of the query with the request's token_label: exactly this label, or else the same
/// without surrounding blanks. Errors: kind usage if none or more than one matches.
std::size_t token_labelled(const Request& request, std::size_t queries);

}  // namespace attn::cli
