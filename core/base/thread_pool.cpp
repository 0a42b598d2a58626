#include "core/base/thread_pool.hpp"

#include <cstdint>
#include <mutex>

#include "core/base/threads.hpp"

namespace attn {

struct ThreadPool::Team {
    using Work = FunctionRef<void(std::size_t, std::size_t)>;

    explicit Team(std::size_t others)
        : threads(start_threads(others, [this](std::size_t i) { serve(i + 1); })) {}

    ~Team() {
        ended = true;
        call();
        for (std::thread& thread : threads) thread.join();
    }

    /// Wakes the other threads for the next piece of work, or to exit.
    void call() {
        calls.fetch_add(1, std::memory_order_release);
        calls.notify_all();
    }

    void serve(std::size_t worker) {
        for (std::uint64_t seen = 0;;) {
            wait_while(calls, seen);
            seen = calls.load(std::memory_order_acquire);
            if (ended) return;
            take_items(worker);
        }
    }

    /// Work comes in quick succession, so a thread spins for some microseconds before it sleeps.
    template <class Value>
    static void wait_while(std::atomic<Value>& value, Value old) {
        for (int i = 0; i < 1000; ++i) {
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

    /// Takes the remaining items one by one. The caller waits for every taken item, so `work` and
    /// `items` belong to the current call. A thread that wakes late finds no items and delays
    /// nobody.
    void take_items(std::size_t worker) {
        for (std::size_t left = untaken.load(std::memory_order_acquire); left != 0;) {
            if (!untaken.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) continue;
            std::size_t done = 1;
            try {
                (*work)(items - left, worker);
            } catch (...) {
                done += untaken.exchange(0, std::memory_order_acq_rel);
                const std::lock_guard lock(failing);
                if (!failure) failure = std::current_exception();
            }
            if (undone.fetch_sub(done, std::memory_order_acq_rel) == done) undone.notify_one();
            left = untaken.load(std::memory_order_acquire);
        }
    }

    void run(std::size_t count, const Work& wanted) {
        work = &wanted;
        items = count;
        undone.store(count, std::memory_order_relaxed);
        untaken.store(count, std::memory_order_release);
        call();
        take_items(0);
        for (std::size_t left; (left = undone.load(std::memory_order_acquire)) != 0;)
            wait_while(undone, left);
        if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
    }

    std::atomic<std::uint64_t> calls{0};
    std::atomic<std::size_t> untaken{0}, undone{0};
    std::atomic<bool> ended{false};
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
    if (items <= 1 || threads_ == 1 || is_dry_run())
        return for_each_index(items, [&](std::size_t item) { work(item, 0); });
    if (team_ == nullptr) team_ = std::make_unique<Team>(threads_ - 1);
    team_->run(items, work);
}

}  // namespace attn
