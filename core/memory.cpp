// Large memory; see memory.hpp.
#include "core/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
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

void advise_large_pages(void* data, std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
    constexpr std::uintptr_t large = std::uintptr_t{1} << 21;
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    const std::uintptr_t first = (begin + large - 1) / large * large;
    const std::uintptr_t end = (begin + bytes) / large * large;
    // Advice only: where it is not taken, pages are small.
    if (end > first) (void)madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#else
    (void)data;
    (void)bytes;
#endif
}

}  // namespace attn
