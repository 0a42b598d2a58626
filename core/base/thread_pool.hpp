// Threads that are started once and share pieces of work.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/base/function_ref.hpp"
#include "core/base/memory.hpp"

namespace attn {

/// The calling thread and up to `threads` - 1 others, which start at the first call of `run` with
/// more than one item and live as long as the object. Not thread-safe.
class ThreadPool {
public:
    /// 0: the number of processors.
    explicit ThreadPool(std::size_t threads = 0);
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;
    ~ThreadPool();

    std::size_t threads() const { return threads_; }

    /// As the constructor; ends the previous threads.
    void set_threads(std::size_t threads);

    /// Calls work(item, worker) once for each item from 0 to items - 1, in that order; `worker` is
    /// below threads(), and calls with the same worker never overlap. Returns when all are done.
    /// Rethrows an exception of `work`, and skips items that have not begun. In a dry run there are
    /// no items.
    void run(std::size_t items, FunctionRef<void(std::size_t item, std::size_t worker)> work);

private:
    struct Team;
    std::size_t threads_;
    std::unique_ptr<Team> team_;
};

/// Calls work(item) for each item from 0 to items - 1 on these workers; without workers, in the
/// caller.
template <class Work>
void share(ThreadPool* workers, std::size_t items, const Work& work) {
    if (workers != nullptr && items > 1)
        return workers->run(items, [&](std::size_t item, std::size_t) { work(item); });
    for_each_index(items, work);
}

/// Calls work(item, slot) on the pool: slots number the workers in the order in which they begin,
/// so that there are never more than items, and buffers are one for each that works.
template <class Work>
void run_in_slots(ThreadPool& pool, std::size_t items, const Work& work) {
    constexpr std::size_t none = ~std::size_t{0};
    std::vector<std::size_t> slots(pool.threads(), none);
    std::atomic<std::size_t> next{0};
    pool.run(items, [&](std::size_t item, std::size_t worker) {
        if (slots[worker] == none) slots[worker] = next.fetch_add(1, std::memory_order_relaxed);
        work(item, slots[worker]);
    });
}

}  // namespace attn
