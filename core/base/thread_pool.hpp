// Threads that are started once and share out pieces of work.
#pragma once

#include <cstddef>
#include <memory>

#include "core/base/function_ref.hpp"

namespace attn {

/// The calling thread and, from the first call of `run` with more than one item on, up to
/// `threads` - 1 others, which live as long as the object. Not for use by several threads at once.
class ThreadPool {
public:
    /// 0: as many as the machine has processors.
    explicit ThreadPool(std::size_t threads = 0);
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;
    ~ThreadPool();

    std::size_t threads() const { return threads_; }

    /// As the constructor; the others are let go.
    void set_threads(std::size_t threads);

    /// Calls work(item, worker) once for each item from 0 to items - 1, handed out in that order;
    /// `worker` is below threads(), and calls with the same worker never overlap. Returns when all
    /// are done; an exception of `work` comes out here, and items not yet begun are left.
    void run(std::size_t items, FunctionRef<void(std::size_t item, std::size_t worker)> work);

private:
    struct Team;
    std::size_t threads_;
    std::unique_ptr<Team> team_;
};

/// work(item) for each item from 0 to items - 1 on these workers; without any, by the caller.
template <class Work>
void share(ThreadPool* workers, std::size_t items, const Work& work) {
    if (workers != nullptr && items > 1)
        return workers->run(items, [&](std::size_t item, std::size_t) { work(item); });
    for (std::size_t item = 0; item < items; ++item) work(item);
}

}  // namespace attn
