#include "core/base/memory.hpp"

#include <sys/mman.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include <array>
#include <cstdio>
#include <limits>
#include <new>

#include "core/base/error.hpp"

namespace attn {
namespace {

thread_local std::size_t sharers = 1;

constexpr std::size_t cache_line = 64, large_page = std::size_t{1} << 21;

/// Below this size alignment gains nothing, and an aligned allocation costs more than the work.
constexpr std::size_t small_size = 1024;

/// Aligned sizes above this overflow.
constexpr std::size_t largest_size = std::numeric_limits<std::ptrdiff_t>::max() - large_page;

thread_local constinit MemoryMeter* current_meter = nullptr;

std::align_val_t alignment_of(std::size_t bytes) {
    return std::align_val_t{bytes >= 2 * large_page ? large_page : cache_line};
}

}  // namespace

std::string bytes_in_words(double bytes) {
    std::array<char, 32> text{};
    if (bytes < 0x1p20)
        std::snprintf(text.data(), text.size(), "%.0f bytes", bytes);
    else if (bytes < 0x1p30)
        std::snprintf(text.data(), text.size(), "%.0f MiB", bytes / 0x1p20);
    else
        std::snprintf(text.data(), text.size(), "%.3g GiB", bytes / 0x1p30);
    return text.data();
}

void require_memory(double bytes, const std::string& location, const std::string& purpose,
                    double processes) {
    if (bytes <= unchecked_memory) return;
    const double need = processes * (bytes + unchecked_memory);
    const MemoryLimit limit = memory_limit(processes);
    if (need > limit.bytes)
        throw SettingError(ErrorKind::input, location, purpose, " needs about ",
                           bytes_in_words(need), " of memory; ", limit.words, " ",
                           bytes_in_words(limit.bytes));
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

MemoryMeter::MemoryMeter(Run run) : run_(run) {
    current_meter = this;
}

MemoryMeter::~MemoryMeter() {
    current_meter = nullptr;
}

MemoryMeter* MemoryMeter::active() {
    return current_meter;
}

void return_free_memory() {
#if defined(__GLIBC__)
    (void)malloc_trim(0);
#endif
}

void* allocate_numbers(std::size_t count, std::size_t size) {
    if (current_meter != nullptr)
        current_meter->add(static_cast<double>(count) * static_cast<double>(size));
    if (is_dry_run()) return no_memory();
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > largest_size) throw std::bad_alloc();
    if (bytes <= small_size) return ::operator new(bytes);
    void* data = ::operator new(bytes, alignment_of(bytes));
#if defined(MADV_HUGEPAGE)
    // Advice only: if it is ignored, pages are small.
    if (bytes >= 2 * large_page)
        (void)madvise(data, bytes / large_page * large_page, MADV_HUGEPAGE);
#endif
    return data;
}

void free_numbers(void* data, std::size_t count, std::size_t size) noexcept {
    if (data == nullptr) return;
    if (current_meter != nullptr)
        current_meter->add(-static_cast<double>(count) * static_cast<double>(size));
    if (data == no_memory()) return;
    if (count * size <= small_size) return ::operator delete(data);
    ::operator delete(data, alignment_of(count * size));
}

}  // namespace attn
