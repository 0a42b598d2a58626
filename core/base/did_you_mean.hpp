// Suggestions: the known word nearest to a mistyped one, the valid head counts near a wrong one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// The candidate with the fewest edits (insert, delete, replace, swap neighbours) from `word`; case
/// is ignored, and - equals _. A candidate that contains the word counts as one edit, one that the
/// word contains as two. Ties go to the first. Empty if all are farther than one edit or a fourth
/// of the letters.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// "4 or 6": the divisors of `width` on either side of `heads`, which is not one.
std::string nearest_divisors(std::uint64_t width, std::uint64_t heads);

/// "4 or 8": the multiples of `heads` on either side of `width`, which is not one.
std::string nearest_multiples(std::uint64_t width, std::uint64_t heads);

}  // namespace attn
