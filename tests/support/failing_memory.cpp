// Preloaded into attn by faults.py: once main has begun, allocations and starts of threads
// fail from number FAIL_AT on, FAIL_COUNT of them. How many there were is written to FAIL_SEEN.
// glibc only.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
}

namespace {

using Main = int (*)(int, char**, char**);

std::atomic<bool> is_counting{false};
std::atomic<unsigned long long> seen{0};
unsigned long long fail_at = 0, fail_count = 0;
Main real_main = nullptr;

unsigned long long number_in(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

bool fails() {
    if (!is_counting.load(std::memory_order_relaxed)) return false;
    const unsigned long long number = seen.fetch_add(1, std::memory_order_relaxed) + 1;
    return fail_at != 0 && number >= fail_at && number - fail_at < fail_count;
}

void* lack() {
    errno = ENOMEM;
    return nullptr;
}

template <class Function>
Function next(const char* name, Function) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int counted_main(int argc, char** argv, char** environment) {
    is_counting = true;
    const int code = real_main(argc, argv, environment);
    is_counting = false;
    if (const char* path = std::getenv("FAIL_SEEN"))
        if (std::FILE* file = std::fopen(path, "w")) {
            std::fprintf(file, "%llu\n", seen.load());
            std::fclose(file);
        }
    return code;
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
    return fails() ? lack() : __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
    return fails() ? lack() : __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) {
    return fails() ? lack() : __libc_realloc(old, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
    return fails() ? lack() : __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
    return fails() ? lack() : __libc_memalign(alignment, size);
}

int posix_memalign(void** result, std::size_t alignment, std::size_t size) {
    if (fails()) return ENOMEM;
    *result = __libc_memalign(alignment, size);
    return *result == nullptr ? ENOMEM : 0;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
    static const auto real = next("pthread_create", &pthread_create);
    return fails() ? EAGAIN : real(thread, attributes, start, argument);
}

int __libc_start_main(Main begin, int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
    using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
    fail_at = number_in("FAIL_AT");
    fail_count = number_in("FAIL_COUNT");
    real_main = begin;
    const auto real = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
    return real(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

}  // extern "C"
