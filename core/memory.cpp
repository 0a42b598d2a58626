// Refuses work that this machine has no memory for; see memory.hpp.
#include "core/memory.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>

#include "core/error.hpp"

namespace attn {
namespace {

std::string in_gib(double bytes) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g GiB", bytes / 0x1p30);
    return text.data();
}

}  // namespace

void require_memory(double bytes, const std::string& where, const std::string& purpose) {
    const double physical =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    if (bytes > physical)
        throw SettingError(ErrorKind::input, where,
                           purpose + " needs about " + in_gib(bytes) +
                               " of memory; this machine has " + in_gib(physical));
}

}  // namespace attn
