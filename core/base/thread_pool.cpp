// Threads that are started once and share out pieces of work; see thread_pool.hpp.
#include "core/base/thread_pool.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/threads.hpp"

namespace attn {

struct ThreadPool::Team {
    using Work = FunctionRef<void(std::size_t, std::size_t)>;

    explicit Team(std::size_t others)
        : threads(start_threads(others, [this](std::size_t i) { serve(i + 1); })) {}

    ~Team() {
        work = nullptr;
        call();
        for (std::thread& thread : threads) thread.join();
    }

    /// Wakes the others for the next piece of work, or for the end.
    void call() {
        busy.store(threads.size(), std::memory_order_relaxed);
        calls.fetch_add(1, std::memory_order_release);
        calls.notify_all();
    }

    void serve(std::size_t worker) {
        for (std::uint64_t seen = 0;; ++seen) {
            wait_while(calls, seen);
            if (work == nullptr) return;
            take_items(worker);
            if (busy.fetch_sub(1, std::memory_order_acq_rel) == 1) busy.notify_one();
        }
    }

    /// Work comes in quick succession, so a thread looks on for some microseconds before it sleeps.
    template <class Value>
    static void wait_while(std::atomic<Value>& value, Value old) {
        for (int i = 0; i < 20000; ++i) {
            if (value.load(std::memory_order_acquire) != old) return;
            pause();
        }
        value.wait(old, std::memory_order_acquire);
    }

    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    void take_items(std::size_t worker) {
        try {
            for (std::size_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;)
                (*work)(item, worker);
        } catch (...) {
            next.store(items, std::memory_order_relaxed);
            const std::lock_guard lock(failing);
            if (!failure) failure = std::current_exception();
        }
    }

    void run(std::size_t count, const Work& wanted) {
        work = &wanted;
        items = count;
        next.store(0, std::memory_order_relaxed);
        call();
        take_items(0);
        for (std::size_t left; (left = busy.load(std::memory_order_acquire)) != 0;)
            wait_while(busy, left);
        if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
    }

    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::size_t> busy{0};
    std::atomic<std::size_t> next{0};
    std::size_t items = 0;
    const Work* work = nullptr;
    std::mutex failing;
    std::exception_ptr failure;
    std::vector<std::thread> threads;  // last: they use all of the above
};

ThreadPool::ThreadPool(std::size_t threads) : threads_(0) {
    set_threads(threads);
}

void ThreadPool::set_threads(std::size_t threads) {
    if (threads == 0) threads = processors();
    if (threads != threads_) team_.reset();
    threads_ = threads;
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run(std::size_t items,
                     FunctionRef<void(std::size_t item, std::size_t worker)> work) {
    if (items <= 1 || threads_ == 1) {
        for (std::size_t item = 0; item < items; ++item) work(item, 0);
        return;
    }
    if (team_ == nullptr) team_ = std::make_unique<Team>(threads_ - 1);
    team_->run(items, work);
}

}  // namespace attn
