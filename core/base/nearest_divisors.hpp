// The head counts that would divide a width.
#pragma once

#include <cstdint>
#include <string>

namespace attn {

/// "the nearest are 4 and 6": the divisors of `width` on either side of `heads`, which is none.
std::string nearest_divisors(std::uint64_t width, std::uint64_t heads);

}  // namespace attn
