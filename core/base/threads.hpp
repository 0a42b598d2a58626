// Threads, limited by the machine.
#pragma once

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace attn {

/// The processors that this program may run on, as `taskset` and container runtimes set them. The
/// system is asked once.
inline std::size_t processors() {
    static const std::size_t count = [] {
#if defined(__linux__)
        cpu_set_t allowed;
        if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
            return static_cast<std::size_t>(CPU_COUNT(&allowed));
#endif
        return std::max<std::size_t>(1, std::thread::hardware_concurrency());
    }();
    return count;
}

/// During its lifetime, threads start with stacks of at most 2 MiB: with many threads, 8 MiB each
/// would exhaust a limited address space. On other systems the default is small.
class SmallStacks {
public:
#if defined(__GLIBC__)
    SmallStacks() {
        constexpr std::size_t enough = std::size_t{2} << 20;
        known_ = pthread_getattr_default_np(&attributes_) == 0;
        changed_ = known_ && pthread_attr_getstacksize(&attributes_, &size_) == 0 && size_ > enough;
        if (changed_) set(enough);
    }
    ~SmallStacks() {
        if (changed_) set(size_);
        if (known_) pthread_attr_destroy(&attributes_);
    }
    SmallStacks(const SmallStacks&) = delete;
    SmallStacks& operator=(const SmallStacks&) = delete;

private:
    void set(std::size_t size) {
        if (pthread_attr_setstacksize(&attributes_, size) == 0)
            pthread_setattr_default_np(&attributes_);
    }

    pthread_attr_t attributes_{};
    std::size_t size_ = 0;
    bool known_ = false, changed_ = false;
#endif
};

/// Starts up to `count` threads, each of which calls its copy of work(i), i from 0 on. If the
/// system provides no more threads or memory, there are fewer, which do the same work.
template <class Work>
std::vector<std::thread> start_threads(std::size_t count, const Work& work) {
    std::vector<std::thread> threads;
    [[maybe_unused]] const SmallStacks stacks;
    try {
        threads.reserve(count);  // a thread that has started must find its element
        for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work, i);
    } catch (const std::exception&) {
    }
    return threads;
}

}  // namespace attn
