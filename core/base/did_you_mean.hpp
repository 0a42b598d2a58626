// The known word that a mistyped one was probably meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// The candidate with the fewest edits (insert, delete, replace, swap neighbours) to `word`; one
/// that contains the word counts as one edit away. The first of equals; empty without candidates.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace attn
