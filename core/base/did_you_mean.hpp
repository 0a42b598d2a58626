// What was probably meant: the known word nearest to a mistyped one, the head counts near a wrong
// one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

/// The candidate nearest to `word`: the fewest edits (insert, delete, replace, swap neighbours),
/// whatever the case, - and _ alike; one that contains the word is one edit away, one that the word
/// is made of two. The first of equals. Empty where every candidate is far: more than one edit,
/// or a fourth of the letters.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

/// "the nearest are 4 and 6": the divisors of `width` on either side of `heads`, which is none.
std::string nearest_divisors(std::uint64_t width, std::uint64_t heads);

}  // namespace attn
