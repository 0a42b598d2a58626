// Threads, as many as the machine gives.
#pragma once

#if defined(__linux__)
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

/// Up to `count` threads, each of which calls its copy of work(i), i from 0 on. Where the machine
/// gives no more threads, or no memory for one, there are fewer, which do the same work.
template <class Work>
std::vector<std::thread> start_threads(std::size_t count, const Work& work) {
    std::vector<std::thread> threads;
    try {
        threads.reserve(count);  // a thread that has started must find its place
        for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work, i);
    } catch (const std::exception&) {
    }
    return threads;
}

}  // namespace attn
