// Sizes in messages.
#pragma once

#include <string>

namespace attn {

/// "512 MiB", "1.5 GiB".
std::string bytes_in_words(double bytes);

}  // namespace attn
