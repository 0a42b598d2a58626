#include "core/base/memory.hpp"

#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <new>

#include "core/base/error.hpp"
#include "core/base/memory_limit.hpp"

namespace attn {
namespace {

/// The program itself, and requests that are too small to be worth a check.
constexpr double of_program = 0x1p24;

thread_local std::size_t sharers = 1;

std::string in_words(double bytes) {
    std::array<char, 32> text{};
    if (bytes < 0x1p30)
        std::snprintf(text.data(), text.size(), "%.0f MiB", bytes / 0x1p20);
    else
        std::snprintf(text.data(), text.size(), "%.3g GiB", bytes / 0x1p30);
    return text.data();
}

}  // namespace

void require_memory(double bytes, const std::string& where, const std::string& purpose) {
    if (bytes <= of_program) return;
    const double need = bytes + of_program;
    const MemoryLimit limit = memory_limit();
    if (need > limit.bytes)
        throw SettingError(ErrorKind::input, where,
                           purpose + " needs about " + in_words(need) + " of memory; " +
                               limit.words + " " + in_words(limit.bytes));
    if (need > limit.bytes / static_cast<double>(sharers)) throw BeyondShare();
}

MemoryShare::MemoryShare(std::size_t parts) {
    sharers = parts;
}

MemoryShare::~MemoryShare() {
    sharers = 1;
}

bool MemoryShare::is_part() {
    return sharers != 1;
}

namespace {

constexpr std::size_t cache_line = 64, large_page = std::size_t{1} << 21;

/// Below this size alignment gains nothing, and an aligned allocation costs more than the work.
constexpr std::size_t small = 1024;

std::align_val_t alignment_of(std::size_t bytes) {
    return std::align_val_t{bytes >= 2 * large_page ? large_page : cache_line};
}

}  // namespace

void* allocate_numbers(std::size_t bytes) {
    if (bytes <= small) return ::operator new(bytes);
    void* data = ::operator new(bytes, alignment_of(bytes));
#if defined(MADV_HUGEPAGE)
    // Advice only: if it is ignored, pages are small.
    if (bytes >= 2 * large_page)
        (void)madvise(data, bytes / large_page * large_page, MADV_HUGEPAGE);
#endif
    return data;
}

void free_numbers(void* data, std::size_t bytes) noexcept {
    if (bytes <= small) return ::operator delete(data);
    ::operator delete(data, alignment_of(bytes));
}

}  // namespace attn
