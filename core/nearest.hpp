// The known word that a mistyped one was probably meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// The candidate with the fewest edits (insert, delete, replace, swap neighbours) to `word`; a candidate that contains it counts as one edit away; the first of equals; empty where there are no candidates.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace attn
