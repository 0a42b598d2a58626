#include "cli/request/errors.hpp"

#if defined(__linux__)
#include <malloc.h>
#endif
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string_view>

#include "io/file/temporary.hpp"

namespace attn::cli {
namespace {

/// Enough to format an error. The memory is never touched, so it costs only addresses.
constexpr std::size_t size_aside = std::size_t{1} << 20;
std::atomic<void*> aside{nullptr};
std::terminate_handler end_otherwise = nullptr;

void give_back() {
    void* const memory = aside.exchange(nullptr);
    if (memory == nullptr) throw std::bad_alloc();
    std::free(memory);
}

/// Some destructors allocate, such as those of nlohmann::json. The program cannot continue after
/// one of them fails.
void end_for_lack() {
    if (std::current_exception() != nullptr) {
        try {
            throw;
        } catch (const std::bad_alloc&) {
            io::remove_temporaries();
            ::_exit(report_out_of_memory());
        } catch (...) {
        }
    }
    end_otherwise();
}

}  // namespace

void prepare_for_out_of_memory() {
#if defined(M_MMAP_THRESHOLD)
    // By default, glibc keeps freed blocks of up to 32 MiB, and blocks of other sizes do not fit
    // into them. A batch would need twice the memory of its largest record.
    ::mallopt(M_MMAP_THRESHOLD, 1 << 22);
#endif
    keep_memory_aside();
    std::set_new_handler(give_back);
    end_otherwise = std::set_terminate(end_for_lack);
}

void keep_memory_aside() noexcept {
    if (aside.load(std::memory_order_relaxed) != nullptr) return;
    // Several jobs may do this at once; only one block remains.
    std::free(aside.exchange(std::malloc(size_aside)));
}

int report_out_of_memory() noexcept {
    constexpr std::string_view parts[] = {"attn: error: memory: ", lack_of_memory, "\n"};
    for (const std::string_view part : parts) {
        // If standard error cannot be written, the exit code still reports the error.
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, part.data(), part.size());
    }
    return code_of_lack;
}

}  // namespace attn::cli
